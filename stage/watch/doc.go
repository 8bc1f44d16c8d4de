// Package watch has a system leave the GPUs that are slow now.
//
// Stragglers listens to the progress of jobs. What a detector (model/straggler) makes of it becomes, GPU by GPU, a
// factor on its known PM scores that fades when nothing is heard, and a quarantine where the GPU is found much slower
// again and again. Oracle stands in its place where the truth is known.
//
// It measures nothing itself: a GPU in quarantine is given back after a while, and the next job on it is the check.
package watch
