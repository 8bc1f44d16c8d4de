package client

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager/kept"
)

// resumable adds to the error that no manager serves a folder how one that has a log is taken up again.
func (c *choice) resumable(err error) error {
	if _, held := Holder(c.State); held || !kept.Folder(c.State).Kept() {
		return err
	}
	return &term.CodedError{Code: term.ExitUnreachable,
		Err: fmt.Errorf("%w; what started it takes it up again: `trainyard serve --state %s`, or the same "+
			"`trainyard run` with --state %s",
			err, term.ShellWord(c.State), term.ShellWord(c.State))}
}

// OrFolder is Asking for a verb that, where no manager serves a folder that has a log, reads that.
func (t *Target) OrFolder(ask func(*cobra.Command, *api.Client, []string) error,
	read func(*cobra.Command, kept.Folder, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := t.Asking(ask)(cmd, args)
		if !errors.Is(err, api.ErrNoManager) || errors.Is(err, api.ErrForbidden) {
			return err
		}
		chosen, bad := t.choose()
		dir := kept.Folder(chosen.State)
		if bad != nil || chosen.Kind() != "state" || !dir.Kept() {
			return err
		}
		if failed := ApiError(read(cmd, dir, args)); failed != nil {
			return failed
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: no one serves %s; this is what it keeps\n", dir)
		return nil
	}
}

// Unserved is the error of what takes a manager.
func Unserved(dir kept.Folder, why string) error {
	return &term.CodedError{Code: term.ExitUnreachable,
		Err: fmt.Errorf("%s: %w, and %s; start one by `trainyard serve`, or name its folder by --state", dir,
			api.ErrNoManager, why)}
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
