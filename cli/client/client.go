package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/server"
	"github.com/trainyard/trainyard/cli/term"
)

// StateVariable names the state folder where --state does not.
const StateVariable = "TRAINYARD_STATE"

// AddState gives a verb the flag that says which manager is meant.
func AddState(cmd *cobra.Command, state *string) {
	cmd.Flags().StringVar(state, "state", "", "state `FOLDER` of the manager (default: $"+StateVariable+", else that of the user)")
	_ = cmd.MarkFlagDirname("state")
}

// StateFolder returns the folder that a flag, the environment or the user's home names.
func StateFolder(flag string) (string, error) {
	for _, dir := range []string{flag, os.Getenv(StateVariable)} {
		if dir != "" {
			return dir, nil
		}
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "trainyard"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", term.Usagef("no state folder: %w; give --state", err)
	}
	return filepath.Join(home, ".local", "state", "trainyard"), nil
}

// Dial reaches the manager of a folder.
func Dial(state string) (*api.Client, error) {
	dir, err := StateFolder(state)
	if err != nil {
		return nil, err
	}
	c, err := api.Dial(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w", dir, api.ErrNoManager)
	}
	return c, ApiError(err)
}

// Asking is a verb that asks a manager.
func Asking(state *string, ask func(cmd *cobra.Command, c *api.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := Dial(*state)
		if err != nil {
			return err
		}
		defer c.Close()
		return ApiError(unmanaged(*state, ask(cmd, c, args)))
	}
}

// unmanaged adds to the error that nobody manages a folder how one that has a log is taken up again.
func unmanaged(state string, err error) error {
	coded := (*term.CodedError)(nil)
	if !errors.Is(err, api.ErrNoManager) || errors.Is(err, api.ErrForbidden) || errors.As(err, &coded) {
		return err
	}
	dir, bad := StateFolder(state)
	if _, held := Holder(dir); bad != nil || held || !server.Folder(dir).Kept() {
		return err
	}
	return &term.CodedError{Code: term.ExitUnreachable, Err: fmt.Errorf("%w; what began it takes it up again: `trainyard serve --state %s`, or the same `trainyard run` with --state %s",
		err, term.ShellWord(dir), term.ShellWord(dir))}
}

// awayFor is how long verbs that follow something go on without a manager.
const awayFor = time.Minute

// Outlast has a verb that follows something go on with the next manager.
func Outlast(cmd *cobra.Command, c *api.Client) {
	c.Outlast(awayFor, func() { fmt.Fprintln(cmd.ErrOrStderr(), "trainyard: the manager is away; waiting for it") })
}

// OrFolder is asking for a verb that, where nobody serves a folder that has a log, reads that.
func OrFolder(state *string, ask func(*cobra.Command, *api.Client, []string) error, read func(*cobra.Command, server.Folder, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := Asking(state, ask)(cmd, args)
		if !errors.Is(err, api.ErrNoManager) || errors.Is(err, api.ErrForbidden) {
			return err
		}
		name, bad := StateFolder(*state)
		dir := server.Folder(name)
		if bad != nil || !dir.Kept() {
			return err
		}
		if failed := ApiError(read(cmd, dir, args)); failed != nil {
			return failed
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: nobody serves %s; this is what it keeps\n", dir)
		return nil
	}
}

// Unserved is the error of what takes a manager.
func Unserved(dir server.Folder, why string) error {
	return &term.CodedError{Code: term.ExitUnreachable, Err: fmt.Errorf("%s: %w, and %s; start one by `trainyard serve`, or name its folder by --state", dir, api.ErrNoManager, why)}
}

// apiCodes are the exit codes of what a manager may answer. The first that fits holds.
var apiCodes = []struct {
	err  error
	code int
}{
	{api.ErrNoManager, term.ExitUnreachable}, {api.ErrNoJob, term.ExitNotFound}, {api.ErrNoGPU, term.ExitNotFound}, {api.ErrNoEvent, term.ExitNotFound},
	{api.ErrAmbiguous, term.ExitConflict}, {api.ErrNoDecided, term.ExitRefused}, {api.ErrElsewhere, term.ExitRefused}, {api.ErrDone, term.ExitConflict},
	{api.ErrEarly, term.ExitRefused}, {api.ErrFixed, term.ExitConflict}, {api.ErrStopped, term.ExitUnreachable}, {api.ErrRefused, term.ExitRefused},
	{api.ErrForbidden, term.ExitPermission}, {api.ErrTimeout, term.ExitTimeout}, {api.ErrBusy, term.ExitTimeout}, {api.ErrMalformed, term.ExitMalformed},
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

// Holder returns the process that has a state folder, by its lock.
func Holder(dir string) (pid string, held bool) {
	f, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		return "", false
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) // let go of as soon as f is closed
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return "", false
	}
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0)
	return strings.TrimSpace(string(b[:n])), true
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
