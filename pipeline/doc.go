// Package pipeline makes Deciders of stages. Stages lists what a system is made of: an order, a placement, an
// admission, a division of GPUs; Pipeline walks down the order on a scratch ledger and appends the changes of target
// that follow; Compose adds estimators in front and rules of provision behind.
//
//	Observe: events ─▶ keys, ledger, indices
//	Decide:  refresh keys ─▶ walk (admit ⇄ place ⇄ evict) ─▶ commit ─▶ provision
//
// The work of a walk grows with what changed, not with the cluster: jobs lie in heaps by shape (groups), the nodes that
// something was given up on are logged (given), and keys grow linearly between events. Stages.WholePass walks the
// sorted list of all jobs instead; it is the reference twin and decides the same.
//
// Why and Brief explain, on demand, why a job waits, by the same stages that decide.
//
// The package deliberately holds no policy, which is what stages are, and knows neither the loop (package engine) nor
// the log (package eventlog): it sees a View and events, and answers with targets.
package pipeline
