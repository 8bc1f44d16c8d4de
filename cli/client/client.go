package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/term"
)

// awayFor is how long verbs that follow something go on without a manager.
const awayFor = time.Minute

// apiCodes are the exit codes of what a manager may answer. The first that fits holds.
var apiCodes = []struct {
	err  error
	code int
}{
	{api.ErrUnknown, term.ExitUnknown}, {api.ErrKeyUsed, term.ExitConflict}, {api.ErrInUse, term.ExitConflict},
	{api.ErrChanged, term.ExitConflict},
	{api.ErrFull, term.ExitRefused},
	{api.ErrNoManager, term.ExitUnreachable}, {api.ErrNoJob, term.ExitNotFound}, {api.ErrNoGPU, term.ExitNotFound},
	{api.ErrNoEvent, term.ExitNotFound},
	{api.ErrAmbiguous, term.ExitConflict}, {api.ErrNoDecided, term.ExitRefused}, {api.ErrElsewhere, term.ExitRefused},
	{api.ErrDone, term.ExitConflict},
	{api.ErrEarly, term.ExitRefused}, {api.ErrFixed, term.ExitConflict}, {api.ErrStopped, term.ExitUnreachable},
	{api.ErrRefused, term.ExitRefused},
	{api.ErrForbidden, term.ExitPermission}, {api.ErrTimeout, term.ExitTimeout}, {api.ErrBusy, term.ExitTimeout},
	{api.ErrNoNode, term.ExitNotFound}, {api.ErrNotHere, term.ExitRefused}, {api.ErrGone, term.ExitRefused},
	{api.ErrNotLeading, term.ExitUnreachable}, {api.ErrMalformed, term.ExitMalformed},
}

// ApiError gives an error of a request its exit code, and says what to do where that helps.
func ApiError(err error) error {
	if coded := (*term.CodedError)(nil); err == nil || errors.As(err, &coded) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return &term.CodedError{Code: term.ExitInterrupted, Err: errors.New("interrupted")}
	}
	for _, x := range apiCodes {
		if !errors.Is(err, x.err) {
			continue
		}
		if x.code == term.ExitUnreachable && errors.Is(err, api.ErrNoManager) {
			err = fmt.Errorf("%w; start one by `trainyard serve`, or name its folder by --state", err)
		}
		return &term.CodedError{Code: x.code, Err: err}
	}
	return err
}

// Mistake gives an error of a request that is made of flags and arguments alone its exit code: where it was not
// understood, that is a mistake in the command, as no file was in it.
func Mistake(err error) error {
	if errors.Is(err, api.ErrMalformed) {
		return term.Usage(err)
	}
	return err
}

// When returns a time of a document for people: the time of day, with its date unless that is today.
func When(text string, now time.Time) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case err != nil:
		return "-"
	case t.Local().Format(time.DateOnly) == now.Local().Format(time.DateOnly):
		return t.Local().Format(time.TimeOnly)
	}
	return t.Local().Format(time.DateTime)
}

// JobTitle names a job in a sentence.
func JobTitle(j *api.Job) string {
	if j.Name == "" {
		return "job " + strconv.Itoa(j.ID)
	}
	return fmt.Sprintf("job %d (%s)", j.ID, j.Name)
}

// Remarks say what is unusual about a GPU.
func Remarks(g *api.GPU) string {
	switch {
	case g.Why != "":
		return api.Printable(g.Why)
	case g.HeldIdle:
		return "memory is held and nothing done with it by " + api.Printable(g.By)
	}
	return ""
}
