// Package term has what verbs share: their frame, errors with exit codes, tables, formats, progress and files that are
// written whole.
package term
