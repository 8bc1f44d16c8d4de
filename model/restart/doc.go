// Package restart is what an elastic restart does to a training, and whether it is worth its price: how a batch is
// divided over another number of GPUs (Divide), by how much the learning rate follows it (Factor), what is lost by
// stopping a job now (Loss), and the guard rails that keep a scheduler from doing so too often (Rails, Worth).
//
// All that are pure functions of what their callers measured, and decide nothing. What a restart costs is learned from
// events (Costs), and so is how often a job was stopped (Guard); how far a job is to be trusted to save when told to
// stop is told by its History.
//
// Source: specification of the manager, sections 5.1, 5.2 and 5.5, and promise 16; where it names no formula, ours.
package restart
