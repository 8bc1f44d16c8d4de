// Package sim is a driver that carries plans out in simulated time. It knows the truth of each job (its duration, its
// speed on a given set of GPUs), which no system sees but through events and through the oracles it was built with.
//
// It is single-threaded and deterministic: the same trace, cluster, runtime model and plans give the same events. Nodes
// of pools boot when they are rented and go when they are released; which number a node has it learns from the View.
package sim
