// Package trace reads, writes, describes and generates traces of jobs: lists of what was submitted when, with the true
// run time of each job. The truth stays here and in the simulator; a policy only ever sees the sched.JobSpec.
//
// A file's format is told by its header line alone, never by its name; Formats lists them. Times of a trace are
// counted from an origin that the format defines (Trace.Zone says what is known of it). Every malformed file gives one
// error that names file, line, column, value and what was wanted instead.
//
// The package does not clean data: rows are never dropped, clamped or filled in. What a reader should know about a
// file as a whole (unsorted rows, clamped durations) is in Trace.Warnings.
package trace
