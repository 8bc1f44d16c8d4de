// Package writer writes to the API server what a driver is ordered to: it makes the objects of attempts, deletes them,
// and notes on TrainingJobs what later leaders must know.
//
// Writers carry out tasks, those of one line in order, and try each write until it succeeds or no one wants it any
// more: an API server that restarts loses no order. All objects of an attempt have names that follow from its number.
// So a leader that comes back after a crash does the same again and finds it done.
package writer
