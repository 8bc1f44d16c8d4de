package term

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/trainyard/trainyard/internal/inputfile"
	"github.com/trainyard/trainyard/trace"
)

// Exit codes of the verbs here. The numbers are part of the command line's contract.
const (
	ExitOK          = 0
	ExitGeneral     = 1
	ExitUsage       = 2 // unknown flag, system, key or preset, a required flag missing
	ExitNotFound    = 3
	ExitConflict    = 4 // the state folder is in use or started with something else, a job is done, a name is taken
	ExitRefused     = 5 // what was asked for can never be, as a job wider than the machine
	ExitUnreachable = 6 // no manager runs there, and nothing was sent
	ExitTimeout     = 7 // no answer in time, or not done in the time given
	ExitPermission  = 8
	ExitMalformed   = 9 // malformed trace, cluster, distribution, job or log file
	ExitJobFailed   = 10
	ExitUnknown     = 11 // jobs may have been submitted or not: the error has the command that asks again, by --key
	ExitInterrupted = 130
)

// CodedError is an error that knows its exit code.
type CodedError struct {
	Code int
	Err  error
}

// Error is that of the error within.
func (e *CodedError) Error() string { return e.Err.Error() }

// Unwrap returns the error within.
func (e *CodedError) Unwrap() error { return e.Err }

// Usage marks err as an error of the command line; nil stays nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &CodedError{ExitUsage, err}
}

// Usagef returns a formatted error of the command line.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// Malformed marks err as an error of an input file.
func Malformed(err error) error { return &CodedError{ExitMalformed, err} }

// ExitCode returns the exit code of an error: its own, or that of the kind of error it wraps.
func ExitCode(err error) int {
	if coded := (*CodedError)(nil); errors.As(err, &coded) {
		return coded.Code
	}
	switch inputfile.FaultOf(err) {
	case inputfile.Asked:
		return ExitUsage
	case inputfile.Damaged:
		return ExitMalformed
	}
	switch parse := (*trace.ParseError)(nil); {
	case errors.As(err, &parse):
		return ExitMalformed
	case errors.Is(err, fs.ErrNotExist):
		return ExitNotFound
	case errors.Is(err, fs.ErrPermission):
		return ExitPermission
	}
	return ExitGeneral
}

// Refusedf returns a formatted error of a request that was understood and refused.
func Refusedf(format string, args ...any) error {
	return &CodedError{ExitRefused, fmt.Errorf(format, args...)}
}
