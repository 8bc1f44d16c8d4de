// Package local is the driver that runs jobs as processes of this machine: on its GPUs, or on CPU slots where it has
// none.
//
// Next to each attempt stands a shim, a small process that outlives this one (package shim). The driver only gives
// orders to shims and listens to them; when it dies, attempts go on, and the next driver finds them again by their run
// directories: a shim is known by boot id, pid and start time, and by the lock it holds. So one story serves the start
// of a manager and its return after a crash:
//
//  1. The order to start is in the log, durably, before Apply hears of it.
//  2. The order is written into the run directory; a shim is started; it takes the lock of the job, which can be taken
//     for an attempt once only; it locks the devices, starts the job and says so.
//  3. Whoever comes back after a crash between any two of these steps gives the same order again. Either a shim has
//     started already, then it is found and listened to, or none ever will but the new one.
//  4. The shim writes down how the attempt ended once no process of it is left.
//  5. The end is reported once its devices were seen free, or together with those that are not (package device).
//
// It decides nothing.
package local
