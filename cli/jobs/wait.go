package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

func newWait() *cobra.Command {
	var to client.Target
	var timeout time.Duration
	var propagate bool
	var which selection
	cmd := &cobra.Command{
		Use:   "wait JOB...",
		Short: "Wait until jobs are done",
		Long: `Waits until jobs, by number or name, are done, and says how each ended if there
are several. Its exit code is 0 if all have finished, else that of the first, in
the order given, that did not: its own from 1 to 125 (--propagate), else 10; 7
if --timeout came first. --all does not speak for jobs that are done already. A
manager that is started again within a minute is waited for.
` + selectHelp,
		Example:           `  trainyard submit -- python train.py | xargs trainyard wait --timeout 2h`,
		Args:              which.check,
		ValidArgsFunction: jobNames(&to),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("timeout") && timeout <= 0 {
				return term.Usagef("--timeout %v, want > 0", timeout)
			}
			return nil
		},
		RunE: to.Asking(func(cmd *cobra.Command, c *api.Client, args []string) error {
			ctx := cmd.Context()
			if timeout > 0 {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, timeout)
				defer stop()
			}
			client.Outlast(cmd, c)
			args, err := which.pick(cmd, c, args)
			if errors.Is(err, api.ErrNoJob) && which.all && !which.filters() {
				fmt.Fprintln(cmd.ErrOrStderr(), "no job is left to wait for")
				return nil
			}
			if err != nil {
				return err
			}
			docs, err := waitFor(ctx, c, args)
			reportEnds(cmd.ErrOrStderr(), docs, len(args))
			switch {
			case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
				return &term.CodedError{Code: term.ExitTimeout,
					Err: fmt.Errorf("not done after %v: %s", timeout, args[len(docs)])}
			case errors.Is(err, context.Canceled):
				return &term.CodedError{Code: term.ExitInterrupted,
					Err: fmt.Errorf("interrupted; job %s goes on", args[len(docs)])}
			}
			if err != nil {
				return err
			}
			return firstFailed(docs, propagate)
		}),
	}
	cmd.Flags().SortFlags = false
	to.AddFlags(cmd)
	which.define(cmd)
	which.yes, which.done = true, true
	_ = cmd.Flags().MarkHidden("yes")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after `DURATION`, such as 90m (default: never)")
	cmd.Flags().BoolVar(&propagate, "propagate", true,
		"exit with the code of a job that failed, from 1 to 125; else with 10")
	return cmd
}

// reportEnds says how each of several jobs ended, of so many that were asked for. The exit code speaks for the only
// one, and the error.
func reportEnds(w io.Writer, docs []api.Job, of int) {
	for i := 0; i < len(docs) && of > 1; i++ {
		if err := jobExit(&docs[i], true); err != nil {
			fmt.Fprintln(w, err)
		} else {
			fmt.Fprintln(w, client.JobTitle(&docs[i]), "finished")
		}
	}
}

// firstFailed is the error of the first job that did not finish, with how many these are if there are others; nil if
// all have finished.
func firstFailed(docs []api.Job, propagate bool) (first error) {
	n := 0
	for i := range docs {
		err := jobExit(&docs[i], propagate)
		if err != nil {
			n++
		}
		first = cmp.Or(first, err)
	}
	if len(docs) == 1 || first == nil {
		return first
	}
	return &term.CodedError{Code: term.ExitCode(first),
		Err: fmt.Errorf("%d of %d jobs did not finish, the first: %w", n, len(docs), first)}
}
