package serve

import (
	"errors"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/access"
	"github.com/trainyard/trainyard/manager/store"
	"github.com/trainyard/trainyard/sched"
)

// refused gives the error of a request its exit code.
func refused(err error) error {
	if errors.Is(err, manager.ErrRefused) {
		return &term.CodedError{Code: term.ExitRefused, Err: err}
	}
	return term.Usage(err)
}

// notOurs gives the error of a folder that others own or can write its exit code.
func notOurs(err error) error {
	if errors.Is(err, access.ErrOthers) {
		return &term.CodedError{Code: term.ExitPermission, Err: err}
	}
	return err
}

// managerError gives an error about the state folder its exit code.
func managerError(err error) error {
	for _, conflict := range []error{store.ErrBusy, store.ErrForeign, store.ErrNotEmpty, manager.ErrOther} {
		if errors.Is(err, conflict) {
			return &term.CodedError{Code: term.ExitConflict, Err: err}
		}
	}
	return err
}

// alive counts the jobs that have an attempt.
func alive(rows []host.Row) (n int) {
	for i := range rows {
		if a := rows[i].Attempt; a != sched.NoAttempt && a != sched.Ended {
			n++
		}
	}
	return n
}
