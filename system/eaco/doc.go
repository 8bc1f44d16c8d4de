// Package eaco holds the systems that put jobs on GPUs which others use already.
//
// EaCO (Decider) serves a queue by priority, then arrival: a job joins the busiest set of GPUs where all that run there
// keep their deadlines, on trial; package share judges and ends trials.
//
// Source: Haghshenas and Hashemi, "EaCO: Resource Sharing Dynamics and Its Impact on Energy Efficiency for DNN
// Training", arXiv 2412.08294, algorithms 1 and 2. What the paper leaves open is ours and marked Deviation.
//
// Pairs are the two baselines of the paper, fifo_packed and gandiva as Gavel has them, without rounds.
//
// The package deliberately neither sleeps nodes nor caps power: those are stages of provision that any system can be
// given. Its folder published plays Gavel's simulator, in which the paper was evaluated.
package eaco
