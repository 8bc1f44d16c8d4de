package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/manager/api"
)

// logsFlags are the flags of logs as given.
type logsFlags struct {
	state   string
	follow  bool
	since   time.Duration
	attempt int
	tail    int
	raw     bool
}

func newLogs() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs JOB",
		Short: "Print what a job writes",
		Long: `Prints the output of a job, by number or name: of its latest attempt, or with
--follow of that and all that come, until the job is done. What would do more to a
terminal than write and colour is left out, unless --raw is given.`,
		Example:           "  trainyard logs 3\n  trainyard logs resnet50 -f --tail 20",
		Args:              exactly("JOB"),
		ValidArgsFunction: jobNames(&f.state),
		RunE: asking(&f.state, func(cmd *cobra.Command, c *api.Client, args []string) error {
			o := api.LogOptions{Attempt: f.attempt, Follow: f.follow, Tail: f.tail}
			if f.since > 0 {
				o.Since = time.Now().Add(-f.since)
			}
			_, err := c.Logs(cmd.Context(), args[0], o, outputTo(cmd.OutOrStdout(), cmd.ErrOrStderr(), f.raw))
			return err
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	addState(cmd, &f.state)
	fs.BoolVarP(&f.follow, "follow", "f", false, "go on as it is written")
	fs.IntVar(&f.tail, "tail", -1, "only the last `N` lines of what is there")
	fs.DurationVar(&f.since, "since", 0, "only attempts that wrote something within `DURATION`, such as 1h")
	fs.IntVar(&f.attempt, "attempt", 0, "attempt `N`, or from there on with --follow (default: the latest)")
	fs.BoolVar(&f.raw, "raw", false, "as it was written, control sequences included")
	return cmd
}

// outputTo writes pieces of output as they come, and says on the side where another attempt begins.
func outputTo(w, side io.Writer, raw bool) func(api.Output) error {
	attempt := 0
	var clean api.Printer
	return func(o api.Output) error {
		if attempt != 0 && o.Attempt != attempt {
			fmt.Fprintf(side, "-- attempt %d\n", o.Attempt)
		}
		attempt = o.Attempt
		if raw {
			return writeText(w, o.Text)
		}
		return writeText(w, string(clean.Append(nil, []byte(o.Text))))
	}
}
