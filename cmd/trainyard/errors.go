package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/trainyard/trainyard/trace"
)

// Exit codes of the verbs here. The numbers are part of the command line's contract.
const (
	exitOK          = 0
	exitGeneral     = 1
	exitUsage       = 2 // unknown flag, system, key or preset, a required flag missing
	exitNotFound    = 3
	exitConflict    = 4 // the state folder is in use or begun with something else, a job is done, a name is taken
	exitRefused     = 5 // what was asked for can never be, as a job wider than the machine
	exitUnreachable = 6 // no manager runs there
	exitTimeout     = 7 // no answer in time, or not done in the time given
	exitPermission  = 8
	exitMalformed   = 9 // malformed trace, cluster, distribution, job or log file
	exitJobFailed   = 10
	exitInterrupted = 130
)

// codedError is an error that knows its exit code.
type codedError struct {
	code int
	err  error
}

// Error is that of the error within.
func (e *codedError) Error() string { return e.err.Error() }

// Unwrap returns the error within.
func (e *codedError) Unwrap() error { return e.err }

// usage marks err as an error of the command line; nil stays nil.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &codedError{exitUsage, err}
}

func usagef(format string, args ...any) error { return usage(fmt.Errorf(format, args...)) }

// malformed marks err as an error of an input file.
func malformed(err error) error { return &codedError{exitMalformed, err} }

// exitCode returns the exit code of an error: its own, or that of the kind of error it wraps.
func exitCode(err error) int {
	if coded := (*codedError)(nil); errors.As(err, &coded) {
		return coded.code
	}
	switch parse := (*trace.ParseError)(nil); {
	case errors.As(err, &parse):
		return exitMalformed
	case errors.Is(err, fs.ErrNotExist):
		return exitNotFound
	case errors.Is(err, fs.ErrPermission):
		return exitPermission
	}
	return exitGeneral
}

func refusedf(format string, args ...any) error {
	return &codedError{exitRefused, fmt.Errorf(format, args...)}
}
