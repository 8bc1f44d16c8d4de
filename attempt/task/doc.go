// Package task holds what a job of one machine runs: an argument vector, a folder, an environment and a grace period. A
// Task is stored with its job as one line of text, see Task.Encode, and handed to the driver that starts processes.
//
// A Task never passes through a shell, so nothing in it is ever taken for one's syntax. What a job's environment may
// not say, because the scheduler says it or because it would change the program that starts the job, is listed by
// Reserved.
//
// The package deliberately does no I/O and starts nothing: whether the folder exists and the program can be run is
// found out by those who start it.
package task
