// Package trace reads, writes, describes and generates traces of jobs: lists of what was submitted when, with the true
// run time of each job. The truth stays here and in the simulator; a policy only ever sees the sched.JobSpec.
//
// A file's format is reported by its header line, or by its first row where it has none, never by its name; Formats
// lists them. Times of a trace are counted from an origin that the format defines (Trace.Zone and Trace.Origin say what
// is known of it). Every malformed file gives one error that names file, line, column, value and what was wanted
// instead.
//
// The package does not clean data: nothing is clamped or filled in, and rows are left out only if they are no jobs to
// be scheduled, such as those of a log that ask for no GPU or never ran; Trace.LeftOut counts them by reason. What a
// reader should know about a file as a whole (unsorted rows, clamped durations) is in Trace.Warnings.
//
// Reading is row by row: parse.go finds the format (format.go) and walks the rows, field.go reads values, and each
// format is a literal in a file of its own. Convert writes what it reads without holding it.
package trace
