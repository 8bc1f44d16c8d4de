// Package jobs knows the TrainingJobs of a cluster: which of them arrived and by which number, what each asks for, and
// what keeps one from arriving. A look at a TrainingJob reports what its user wants and the View does not know yet.
package jobs
