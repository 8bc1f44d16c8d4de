package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/driver/local/shim"
)

// detachKey is Ctrl-].
const detachKey = 0x1d

func newAttach() *cobra.Command {
	var to client.Target
	cmd := &cobra.Command{
		Use:   "attach JOB",
		Short: "Use the terminal of a job",
		Long: `Connects this terminal with that of a job which was started by run --pty, or
with the key terminal: on the machine that it runs on, as the user who runs its
manager. What it wrote last is shown. Ctrl-] leaves, and the job goes on. Once
the job is done the exit code is that of the job. Neither this command nor the
manager need live for the job to go on.`,
		Example:           "  trainyard attach 12",
		Args:              term.Exactly("JOB"),
		ValidArgsFunction: jobNames(&to),
		RunE: to.Asking(func(cmd *cobra.Command, c *api.Client, args []string) error {
			job, err := oneJob(cmd, c, args[0])
			if err != nil {
				return err
			}
			if to.Remote() {
				return term.Refusedf("attach: the terminal is on the machine that runs the job; log in there, as by " +
					"`ssh -t HOST trainyard attach JOB`")
			}
			return attach(cmd, c, job)
		}),
	}
	cmd.Flags().SortFlags = false
	to.AddFlags(cmd)
	return cmd
}

// ownTerminal returns the terminal that the user types in.
func ownTerminal(cmd *cobra.Command) (*os.File, error) {
	in, is := cmd.InOrStdin().(*os.File)
	if !is || !xterm.IsTerminal(int(in.Fd())) {
		return nil, term.Usagef("%s: standard input is no terminal, want one; `trainyard logs` shows what a job writes",
			term.OwnName(cmd))
	}
	return in, nil
}

// attach connects the terminal of the user with that of a job until one of them ends.
func attach(cmd *cobra.Command, c *api.Client, job string) error {
	in, err := ownTerminal(cmd)
	if err != nil {
		return err
	}
	client.Outlast(cmd, c)
	for first := true; ; first = false {
		doc, err := startedJob(cmd, c, job)
		if err != nil {
			return err
		}
		if doc.State == "done" {
			if first {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s is done\n", client.JobTitle(&doc))
			}
			return jobExit(&doc, true)
		}
		info, err := c.Info(cmd.Context())
		if err != nil {
			return err
		}
		t, err := shim.Attach(shim.State(info.State).RunDir(int32(doc.ID), int32(doc.Attempt)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return term.Refusedf("%s has no terminal, want a job of `trainyard run --pty`", client.JobTitle(&doc))
		case errors.Is(err, fs.ErrPermission):
			return &term.CodedError{Code: term.ExitPermission, Err: fmt.Errorf("attach: the terminal of %s is for the "+
				"user who runs the manager: %w", client.JobTitle(&doc), err)}
		case errors.Is(err, syscall.ECONNREFUSED): // it has just ended
			time.Sleep(lookAgain)
			continue
		case err != nil:
			return err
		}
		left, err := connected(cmd, in, t)
		if errors.Is(err, shim.ErrFull) {
			return &term.CodedError{Code: term.ExitConflict, Err: fmt.Errorf("attach: %d are attached already to %s, "+
				"want fewer", shim.MostAttached, client.JobTitle(&doc))}
		}
		if left || err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s goes on; `trainyard attach %d` comes back\n", client.JobTitle(&doc),
				doc.ID)
			return err
		}
		job = strconv.Itoa(doc.ID)
		time.Sleep(lookAgain)
	}
}

// lookAgain is how long until a job is looked at again that is about to start or to be done.
const lookAgain = 100 * time.Millisecond

// startedJob returns a job once it runs or is done. Its user reads why it waits.
func startedJob(cmd *cobra.Command, c *api.Client, job string) (doc api.Job, err error) {
	for said := false; ; {
		if doc, err = c.Job(cmd.Context(), job); err != nil {
			return doc, err
		}
		if doc.State == "running" || doc.State == "done" {
			return doc, nil
		}
		if !said && (doc.State == "held" || doc.State == "waiting") {
			said = true
			fmt.Fprintf(cmd.ErrOrStderr(), "%s %s\n", client.JobTitle(&doc), api.Printable(doc.Why))
		}
		select {
		case <-cmd.Context().Done():
			return doc, cmd.Context().Err()
		case <-time.After(lookAgain):
		}
	}
}

// connected passes keys and sizes on to a terminal, and what it writes to ours, and reports whether the user left it.
// Our terminal is as it was when it returns.
func connected(cmd *cobra.Command, in *os.File, t *shim.Attached) (left bool, err error) {
	before, err := xterm.MakeRaw(int(in.Fd()))
	if err != nil {
		return false, errors.Join(err, t.Close())
	}
	defer func() { err = errors.Join(err, xterm.Restore(int(in.Fd()), before)) }()
	defer t.Close()
	sized, gone := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(sized, syscall.SIGWINCH)
	signal.Notify(gone, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(sized)
	defer signal.Stop(gone)
	over, keys := make(chan error, 1), make(chan []byte)
	go func() {
		b := make([]byte, 4096)
		for {
			n, failed := t.Read(b)
			_, bad := cmd.OutOrStdout().Write(b[:n])
			if errors.Is(failed, shim.ErrFull) {
				over <- failed
				return
			}
			if failed != nil || bad != nil {
				over <- nil
				return
			}
		}
	}()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go read(ctx, in, keys)
	sized <- syscall.SIGWINCH
	for {
		select {
		case err = <-over:
			return false, err
		case <-gone:
			return true, nil
		case <-sized:
			if columns, rows, failed := xterm.GetSize(int(in.Fd())); failed == nil {
				_ = t.Size(rows, columns) // if it is over, that is heard next
			}
		case b, open := <-keys:
			if !open {
				return true, nil
			}
			for i := range b {
				if b[i] == detachKey {
					_ = t.Type(b[:i])
					return true, nil
				}
			}
			_ = t.Type(b)
		}
	}
}

// read passes on what is typed until ctx ends or there is no more.
func read(ctx context.Context, in *os.File, keys chan<- []byte) {
	defer close(keys)
	for {
		b := make([]byte, 1024)
		n, err := in.Read(b)
		if err != nil {
			return
		}
		select {
		case keys <- b[:n]:
		case <-ctx.Done():
			return
		}
	}
}

// terminalKeys sets the flags of a command that has a terminal, as far as they are not given: it is never stopped for
// others, and asked to end by SIGHUP, which shells follow.
func (f *runFlags) terminalKeys(cmd *cobra.Command) error {
	switch {
	case !isCommand(cmd):
		return term.Usagef("run: --pty is for a command, want -- COMMAND ARGUMENTS...")
	case f.json:
		return term.Usagef("run: --json next to --pty, want one of them")
	case f.idle <= 0:
		return term.Usagef("run: --idle %v, want > 0", f.idle)
	}
	for flag, value := range map[string]string{"terminal": f.idle.String(), "preemptible": "false",
		"checkpoint-signal": "HUP"} {
		if cmd.Flags().Changed(flag) {
			continue
		}
		if err := cmd.Flags().Set(flag, value); err != nil {
			return err
		}
	}
	return nil
}

// runTerminal submits a command that has a terminal, and connects ours with it.
func (f *runFlags) runTerminal(cmd *cobra.Command, c *api.Client, args []string) error {
	to := f.target()
	if to.Remote() {
		return term.Refusedf("run: --pty is for jobs of this machine; log in there, as by `ssh -t HOST trainyard run " +
			"--pty`")
	}
	s, err := f.submission(cmd, args)
	if err != nil {
		return err
	}
	if !f.dry {
		if _, err = ownTerminal(cmd); err != nil {
			return err
		}
	}
	doc, err := f.once.Submit(cmd, &to, c, &s, args)
	if err != nil {
		return client.ApiError(err)
	}
	if f.dry {
		return term.WriteText(cmd.OutOrStdout(), planText(&doc, term.WidthOf(cmd.OutOrStdout()), time.Now()))
	}
	job := strconv.Itoa(doc.Jobs[0].ID)
	if !f.quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "submitted as job %s; once it runs, Ctrl-] leaves it alone\n", job)
	}
	err = attach(cmd, c, job)
	if !errors.Is(err, context.Canceled) {
		return client.ApiError(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), cancelLimit) // it has not started
	defer stop()
	if _, failed := c.Cancel(ctx, job); failed != nil {
		return client.ApiError(failed)
	}
	return &term.CodedError{Code: term.ExitInterrupted, Err: fmt.Errorf("interrupted; job %s is cancelled", job)}
}
