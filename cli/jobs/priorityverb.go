package jobs

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

func newPriority() *cobra.Command {
	var to client.Target
	var p api.Priority
	cmd := &cobra.Command{
		Use:   "priority JOB {N | --above OTHER | --below OTHER}",
		Short: "Have a job served before others, or behind them",
		Long: `Gives a job a priority: of those that wait, jobs of a larger one are served
first, where the system looks at priorities. --above and --below give it one by
which it is before or behind another job. Says what that changes of the
forecast.

You may lower your jobs, and order them among themselves. More than 0, or a
place before another's job, takes the role admin, or serve --user-priority.`,
		Example: `  trainyard priority 3 -- -1
  trainyard priority bert --above 7`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			p.Priority, err = wantedPriority(cmd, args, p.Above != "" || p.Below != "")
			if err == nil && p.Above != "" && p.Below != "" {
				err = term.Usagef("priority: --above next to --below, want one of them")
			}
			return err
		},
		ValidArgsFunction: jobNames(&to),
		RunE: to.Changing(func(cmd *cobra.Command, c *api.Client, args []string) error {
			before := startOf(cmd.Context(), c, args[0])
			doc, err := api.EditsOf(c).Prioritize(cmd.Context(), args[0], p)
			if err != nil {
				return err
			}
			if title := client.JobTitle(&doc.Job); len(doc.Notes) > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s %s\n", title, strings.Join(doc.Notes, "; "))
			} else {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s has priority %d%s\n", title, doc.Job.Priority,
					moved(before, startOf(cmd.Context(), c, strconv.Itoa(doc.Job.ID)), time.Now()))
			}
			return nil
		}),
	}
	cmd.Flags().SortFlags = false
	to.AddFlags(cmd)
	cmd.Flags().StringVar(&p.Above, "above", "", "before `OTHER`, by number or name")
	cmd.Flags().StringVar(&p.Below, "below", "", "behind `OTHER`, by number or name")
	return cmd
}

// wantedPriority returns the number behind the job; nil where the place next to another job is given instead.
func wantedPriority(cmd *cobra.Command, args []string, placed bool) (*int, error) {
	if err := jobs(cmd, args); err != nil {
		return nil, err
	}
	switch {
	case placed && len(args) == 1:
		return nil, nil
	case placed || len(args) > 2:
		return nil, term.Usagef("priority: %s, want one job and one of N, --above OTHER, --below OTHER",
			term.ShellWord(args[1]))
	case len(args) == 1:
		return nil, term.Usagef("priority: no priority, want N, --above OTHER or --below OTHER, as in "+
			"`trainyard priority %s 1`", args[0])
	}
	n, err := strconv.ParseInt(args[1], 10, 32)
	if err != nil {
		return nil, term.Usagef("priority: %s, want a whole number from -2147483648 to 2147483647",
			term.ShellWord(args[1]))
	}
	whole := int(n)
	return &whole, nil
}

// startOf returns when a job that waits is to start, nil where that is not known.
func startOf(ctx context.Context, c *api.Client, job string) *api.Within {
	limited, cancel := context.WithTimeout(ctx, foreseeing)
	defer cancel()
	doc, err := c.Why(limited, job, foreseeing, 0)
	if err != nil {
		return nil
	}
	return doc.Job.Start
}

// foreseeing is how long a verb waits for a look into the future.
const foreseeing = 3 * time.Second

// moved says what a change makes of the start of a job.
func moved(before, after *api.Within, now time.Time) string {
	switch {
	case !known(before) || !known(after):
		return "; no start can be foreseen"
	case before.Median == after.Median && before.Low == after.Low && before.High == after.High:
		return "; its forecast stays as it was: starts " + within(after, now)
	}
	return fmt.Sprintf(": starts %s, before that %s", within(after, now), within(before, now))
}
