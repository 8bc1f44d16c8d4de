package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/manager/api"
)

func newCancel() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel STATE JOB...",
		Short: "End jobs of a `trainyard run` that is under way",
		Long: `Ends jobs, by number or name, whatever they do at the moment: those that wait
never start; those that run get SIGTERM, their grace, then SIGKILL. Returns once
the wish is durable. STATE is the state folder of the run.`,
		Example: `  trainyard cancel jobs.state 3
  trainyard cancel jobs.state resnet50 bert`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("cancel: %s, want STATE JOB...; see `trainyard cancel --help`", counted(len(args), "argument"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := api.Dial(args[0])
			if err != nil {
				return err
			}
			defer client.Close()
			var first error
			for _, job := range args[1:] { // one that cannot be cancelled is told, and keeps nobody else
				_, err := client.Cancel(cmd.Context(), job)
				switch {
				case err == nil:
					fmt.Fprintf(cmd.ErrOrStderr(), "job %s is cancelled\n", job)
				case errors.Is(err, api.ErrNoManager):
					return cancelError(fmt.Errorf("%w; to end jobs, start the same `trainyard run` again and cancel them then", err))
				case first == nil:
					first = cancelError(err)
				default:
					fmt.Fprintln(cmd.ErrOrStderr(), "trainyard:", err)
				}
			}
			return first
		},
	}
	return cmd
}

// cancelError gives an error about a cancel its exit code.
func cancelError(err error) error {
	for _, kind := range []struct {
		err  error
		code int
	}{{api.ErrNoManager, exitUnreachable}, {api.ErrNoJob, exitNotFound}, {api.ErrDone, exitRefused}, {api.ErrEarly, exitRefused}, {api.ErrForbidden, exitPermission}} {
		if errors.Is(err, kind.err) {
			return &codedError{kind.code, err}
		}
	}
	return err
}
