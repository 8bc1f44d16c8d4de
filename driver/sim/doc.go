// Package sim is a driver that carries plans out in simulated time. It knows the truth of each job (its duration, its
// speed on a given set of GPUs), which no system sees but through events and through the oracles it was built with.
//
// It is single-threaded and deterministic: the same trace, cluster, runtime model and plans give the same events.
package sim
