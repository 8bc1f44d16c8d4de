package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/manager/api"
)

func newWait() *cobra.Command {
	var state string
	var timeout time.Duration
	var propagate bool
	cmd := &cobra.Command{
		Use:   "wait JOB...",
		Short: "Wait until jobs are done",
		Long: `Waits until jobs, by number or name, are done. Its exit code is 0 if all have
finished, else the worst of theirs; 7 if --timeout came first. A manager that is
started again within a minute is waited for.`,
		Example:           `  trainyard submit -- python train.py | xargs trainyard wait --timeout 2h`,
		Args:              jobs,
		ValidArgsFunction: jobNames(&state),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("timeout") && timeout <= 0 {
				return usagef("--timeout %v, want > 0", timeout)
			}
			return nil
		},
		RunE: asking(&state, func(cmd *cobra.Command, c *api.Client, args []string) error {
			ctx := cmd.Context()
			if timeout > 0 {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, timeout)
				defer stop()
			}
			outlast(cmd, c)
			docs, err := waitFor(ctx, c, args)
			switch {
			case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
				return &codedError{exitTimeout, fmt.Errorf("not done after %v: %s", timeout, args[len(docs)])}
			case errors.Is(err, context.Canceled):
				return &codedError{exitInterrupted, fmt.Errorf("interrupted; job %s goes on", args[len(docs)])}
			}
			if err != nil {
				return err
			}
			return worst(docs, propagate)
		}),
	}
	addState(cmd, &state)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after `DURATION`, such as 90m (default: never)")
	cmd.Flags().BoolVar(&propagate, "propagate", true, "exit with the code of a job that failed, from 1 to 125; else with 10")
	return cmd
}

// worst is the error of the job with the largest exit code; nil if all have finished.
func worst(docs []api.Job, propagate bool) (most error) {
	for i := range docs {
		if err := jobExit(&docs[i], propagate); err != nil && (most == nil || exitCode(err) > exitCode(most)) {
			most = err
		}
	}
	return most
}
