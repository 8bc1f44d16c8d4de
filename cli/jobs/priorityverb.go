package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager/jobfile"
)

func newPriority() *cobra.Command {
	var to client.Target
	var which selection
	var p api.Priority
	var names []string
	cmd := &cobra.Command{
		Use:   "priority JOB... {N | --above OTHER | --below OTHER}",
		Short: "Have jobs served before others, or behind them",
		Long: `Gives jobs a priority: of those that wait, jobs of a larger one are served
first, under every system. --above and --below give it one by which they are
before or behind another job. Says of one job what that changes of its forecast.

You may lower your jobs, and order them among themselves. More than 0, or a
place before another's job, takes the role admin, or serve --user-priority.
` + selectHelp,
		Example: `  trainyard priority 3 -- -1
  trainyard priority bert --above 7
  trainyard priority --user alice --status waiting -- -5`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			if names, err = wanted(&p, args, which.all || which.filters()); err == nil {
				err = which.check(cmd, names)
			}
			return err
		},
		ValidArgsFunction: jobNames(&to),
		RunE: to.Changing(func(cmd *cobra.Command, c *api.Client, _ []string) error {
			picked, err := which.pick(cmd, c, names)
			for _, other := range []*string{&p.Above, &p.Below} {
				if *other != "" && err == nil {
					*other, err = oneJob(cmd, c, *other)
				}
			}
			if err != nil {
				return err
			}
			return each(cmd, picked, func(job string) error {
				return prioritize(cmd, c, job, p, names, len(picked) == 1)
			})
		}),
	}
	cmd.Flags().SortFlags = false
	to.AddFlags(cmd)
	cmd.Flags().StringVar(&p.Above, "above", "", "before `OTHER`, by number or name")
	cmd.Flags().StringVar(&p.Below, "below", "", "behind `OTHER`, by number or name")
	which.define(cmd)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		unknown := (*pflag.NotExistError)(nil)
		if errors.As(err, &unknown) && jobfile.IsNumber(unknown.GetSpecifiedShortnames()) {
			n := unknown.GetSpecifiedShortnames()
			return term.Usagef("priority: -%s, want a number below 0 behind --, as in `trainyard priority JOB -- -%s`",
				n, n)
		}
		return cmd.Parent().FlagErrorFunc()(cmd, err)
	})
	return cmd
}

// prioritize gives a job, one of those that arguments named, a priority, and says what becomes of it; foreseen: when it
// is to start as well.
func prioritize(cmd *cobra.Command, c *api.Client, job string, p api.Priority, named []string, foreseen bool) error {
	var before *api.Within
	if foreseen {
		before = startOf(cmd.Context(), c, job)
	}
	doc, err := api.EditsOf(c).Prioritize(cmd.Context(), job, p)
	if err != nil {
		return client.Mistake(err)
	}
	said := strings.Join(doc.Notes, "; ")
	if said == "" {
		said = fmt.Sprintf("has priority %d", doc.Job.Priority)
		if foreseen && len(doc.Job.GPUs) == 0 {
			said += moved(before, startOf(cmd.Context(), c, strconv.Itoa(doc.Job.ID)), time.Now())
		}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s %s%s\n", client.JobTitle(&doc.Job), said, othersOf(&doc.Job, named))
	return nil
}

// wanted splits arguments into jobs and the priority behind them, which p has afterwards. Where p says the place next
// to another job, all are jobs. chosen: a flag selects jobs.
func wanted(p *api.Priority, args []string, chosen bool) (names []string, err error) {
	switch {
	case p.Above != "" && p.Below != "":
		return nil, term.Usagef("priority: --above next to --below, want one of them")
	case p.Above != "" || p.Below != "":
		return args, severalNumbers(args)
	case len(args) == 0 && !chosen:
		return args, nil
	case len(args) == 0 || len(args) == 1 && !chosen:
		return nil, term.Usagef("priority: no priority, want N, --above OTHER or --below OTHER, as in "+
			"`trainyard priority %s 1`", strings.Join(args, " "))
	}
	last := len(args) - 1
	n, err := strconv.ParseInt(args[last], 10, 32)
	if err != nil {
		return nil, term.Usagef("priority: %s, want a whole number from -2147483648 to 2147483647",
			term.ShellWord(args[last]))
	}
	whole := int(n)
	p.Priority = &whole
	return args[:last], nil
}

// severalNumbers refuses a number behind names, where jobs alone are wanted: it may be meant as a priority.
func severalNumbers(args []string) error {
	if n := len(args) - 1; n > 0 && jobfile.IsNumber(args[n]) && !jobfile.IsNumber(args[n-1]) {
		return term.Usagef("priority: %s behind names, next to --above or --below, want either a priority or the "+
			"place next to a job; job %s stands before names", args[n], args[n])
	}
	return nil
}

// startOf returns when a job that waits is to start, nil where that is not known.
func startOf(ctx context.Context, c *api.Client, job string) *api.Within {
	limited, cancel := context.WithTimeout(ctx, foreseeing)
	defer cancel()
	doc, err := c.Why(limited, job, foreseeing, 0)
	if err != nil {
		return nil
	}
	return doc.Start
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
