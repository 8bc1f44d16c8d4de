package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/server"
)

// stateVariable names the state folder where --state does not.
const stateVariable = "TRAINYARD_STATE"

// addState gives a verb the flag that says which manager is meant.
func addState(cmd *cobra.Command, state *string) {
	cmd.Flags().StringVar(state, "state", "", "state `FOLDER` of the manager (default: $"+stateVariable+", else that of the user)")
	_ = cmd.MarkFlagDirname("state")
}

// stateFolder returns the folder that a flag, the environment or the user's home names.
func stateFolder(flag string) (string, error) {
	for _, dir := range []string{flag, os.Getenv(stateVariable)} {
		if dir != "" {
			return dir, nil
		}
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "trainyard"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usagef("no state folder: %w; give --state", err)
	}
	return filepath.Join(home, ".local", "state", "trainyard"), nil
}

// dial reaches the manager of a folder.
func dial(state string) (*api.Client, error) {
	dir, err := stateFolder(state)
	if err != nil {
		return nil, err
	}
	c, err := api.Dial(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w", dir, api.ErrNoManager)
	}
	return c, apiError(err)
}

// asking is a verb that asks a manager.
func asking(state *string, ask func(cmd *cobra.Command, c *api.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := dial(*state)
		if err != nil {
			return err
		}
		defer c.Close()
		return apiError(unmanaged(*state, ask(cmd, c, args)))
	}
}

// unmanaged adds to the error that nobody manages a folder how one that has a log is taken up again.
func unmanaged(state string, err error) error {
	coded := (*codedError)(nil)
	if !errors.Is(err, api.ErrNoManager) || errors.Is(err, api.ErrForbidden) || errors.As(err, &coded) {
		return err
	}
	dir, bad := stateFolder(state)
	if _, held := holder(dir); bad != nil || held || !server.Folder(dir).Kept() {
		return err
	}
	return &codedError{exitUnreachable, fmt.Errorf("%w; what began it takes it up again: `trainyard serve --state %s`, or the same `trainyard run` with --state %s",
		err, shellWord(dir), shellWord(dir))}
}

// awayFor is how long verbs that follow something go on without a manager.
const awayFor = time.Minute

// outlast has a verb that follows something go on with the next manager.
func outlast(cmd *cobra.Command, c *api.Client) {
	c.Outlast(awayFor, func() { fmt.Fprintln(cmd.ErrOrStderr(), "trainyard: the manager is away; waiting for it") })
}

// orFolder is asking for a verb that, where nobody serves a folder that has a log, reads that.
func orFolder(state *string, ask func(*cobra.Command, *api.Client, []string) error, read func(*cobra.Command, server.Folder, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := asking(state, ask)(cmd, args)
		if !errors.Is(err, api.ErrNoManager) || errors.Is(err, api.ErrForbidden) {
			return err
		}
		name, bad := stateFolder(*state)
		dir := server.Folder(name)
		if bad != nil || !dir.Kept() {
			return err
		}
		if failed := apiError(read(cmd, dir, args)); failed != nil {
			return failed
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: nobody serves %s; this is what it keeps\n", dir)
		return nil
	}
}

// unserved is the error of what takes a manager.
func unserved(dir server.Folder, why string) error {
	return &codedError{exitUnreachable, fmt.Errorf("%s: %w, and %s; start one by `trainyard serve`, or name its folder by --state", dir, api.ErrNoManager, why)}
}

// apiCodes are the exit codes of what a manager may answer. The first that fits holds.
var apiCodes = []struct {
	err  error
	code int
}{
	{api.ErrNoManager, exitUnreachable}, {api.ErrNoJob, exitNotFound}, {api.ErrNoGPU, exitNotFound}, {api.ErrNoEvent, exitNotFound},
	{api.ErrAmbiguous, exitConflict}, {api.ErrNoDecided, exitRefused}, {api.ErrElsewhere, exitRefused}, {api.ErrDone, exitConflict},
	{api.ErrEarly, exitRefused}, {api.ErrFixed, exitConflict}, {api.ErrStopped, exitUnreachable}, {api.ErrRefused, exitRefused},
	{api.ErrForbidden, exitPermission}, {api.ErrTimeout, exitTimeout}, {api.ErrBusy, exitTimeout}, {api.ErrMalformed, exitMalformed},
}

// apiError gives an error of a request its exit code, and says what to do where that helps.
func apiError(err error) error {
	if coded := (*codedError)(nil); err == nil || errors.As(err, &coded) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return &codedError{exitInterrupted, errors.New("interrupted")}
	}
	for _, x := range apiCodes {
		if !errors.Is(err, x.err) {
			continue
		}
		if x.code == exitUnreachable && errors.Is(err, api.ErrNoManager) {
			err = fmt.Errorf("%w; start one by `trainyard serve`, or name its folder by --state", err)
		}
		return &codedError{x.code, err}
	}
	return err
}

// when returns a time of a document for people: the time of day, with its date unless that is today.
func when(text string, now time.Time) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case err != nil:
		return "-"
	case t.Local().Format(time.DateOnly) == now.Local().Format(time.DateOnly):
		return t.Local().Format(time.TimeOnly)
	}
	return t.Local().Format(time.DateTime)
}
