// Package restart is what an elastic restart does to a training, and whether it is worth its price: how a batch is divided
// over another number of GPUs (Divide), by how much the learning rate follows it (Scaling), what is lost by stopping a job now
// (Loss), and the guard rails that keep a scheduler from doing so too often (Rails, Worth).
//
// All of it are pure functions of what their callers measured. The package decides nothing, and estimates nothing but how far a
// job is to be trusted to save when told to stop (History).
//
// Source: specification of the manager, sections 5.1, 5.2 and 5.5, and promise 16; where it names no formula, ours.
package restart
