// Package speedup says how fast training goes by GPUs, nodes and batch size.
//
// An App is an application as it truly is, or as somebody believes it to be: a chain of phases (epochs whose statistical
// efficiency differs), each with a size in the application's own unit of progress and a speed for every Way to run. A Chain
// is what deciding needs of it: for each phase the best speed by width alone. A Source tells the Chain of a job: an oracle
// that looks at the true App, or an estimator that learned one from events.
//
// The package does not decide anything: see model/price, stage/allocate.
package speedup
