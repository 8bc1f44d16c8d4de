// Package restart is what an elastic restart does to a training: by how much the learning rate follows the batch size
// (Factor), what a restart costs, which is learned from events (Costs), and the guard rails that keep a scheduler from
// stopping a job too often (Rails), which count how often it was (Guard).
//
// It decides nothing.
//
// Source: specification of the manager, sections 5.1, 5.2 and 5.5, and promise 16; where it names no formula, ours.
package restart
