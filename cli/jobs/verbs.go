package jobs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// A verb about jobs has the manager do something with all of them in one request, and goes on where it cannot be done
// with one; the first error counts.

func newCancel() *cobra.Command {
	cmd := jobVerb("cancel", "is cancelled", "End jobs, whatever they do at the moment",
		`Ends jobs, by number or name: those that wait never start; those that run get
SIGTERM, their grace, then SIGKILL. Returns once the request is durable.`)
	cmd.Aliases = []string{"scancel"} // Slurm's
	cmd.SuggestFor = []string{"kill", "rm", "delete", "stop", "end"}
	return cmd
}

func newPause() *cobra.Command {
	return jobVerb("pause", "is paused", "Take the GPUs of jobs away until they are resumed",
		`Stops jobs as a preemption does (SIGTERM, their grace, then SIGKILL), by number
or name, and keeps them from starting until they are resumed.`)
}

func newResume() *cobra.Command {
	return jobVerb("resume", "waits for its turn", "Let paused jobs wait for GPUs again",
		`Lets paused jobs, by number or name, wait for their turn again. They go on from
their last checkpoint.`)
}

func newRequeue() *cobra.Command {
	return jobVerb("requeue", "is stopped and waits for its turn",
		"Stop jobs and let them wait for their turn again",
		`Stops the attempts of jobs, by number or name, as a preemption does, and lets
the jobs wait for another.`)
}

// unstopped says what becomes of jobs of which nothing is left to be stopped, by state.
var unstopped = map[string]string{"waiting": "waits for its turn", "held": "has nothing to stop, and is held still"}

// jobVerb is a verb that has the manager do something with each of its jobs.
func jobVerb(verb, done, short, long string) *cobra.Command {
	var to client.Target
	var which selection
	cmd := &cobra.Command{
		Use:               verb + " JOB...",
		Short:             short,
		Long:              long + "\n" + selectHelp,
		Example:           fmt.Sprintf("  trainyard %s 3\n  trainyard %s resnet50 bert --state jobs.state", verb, verb),
		Args:              which.check,
		ValidArgsFunction: jobNames(&to),
		RunE: to.Changing(func(cmd *cobra.Command, c *api.Client, args []string) error {
			picked, err := which.pick(cmd, c, args)
			if err != nil {
				return client.ApiError(err)
			}
			var open map[int]string
			if verb == "requeue" || verb == "pause" {
				open = openWork(cmd.Context(), c)
			}
			list, wrong, err := api.CommandAll(cmd.Context(), c, verb, picked)
			if err != nil {
				return err
			}
			at := -1
			return each(cmd, picked, func(string) error {
				if at++; wrong[at] != nil {
					return wrong[at]
				}
				doc, said := &list[at], done
				if word, nothing := unstopped[doc.State]; verb == "requeue" && nothing {
					said = word
				}
				said += open[doc.ID] + othersOf(doc, args)
				fmt.Fprintf(cmd.ErrOrStderr(), "%s %s\n", client.JobTitle(doc), said)
				return nil
			})
		}),
	}
	cmd.Flags().SortFlags = false
	to.AddFlags(cmd)
	which.define(cmd)
	return cmd
}

// othersOf says how all tasks of an array are named, where the job named was the first alone, by its number.
func othersOf(j *api.Job, named []string) string {
	if j.Array == nil || j.Array.First != j.ID || !slices.Contains(named, strconv.Itoa(j.ID)) {
		return ""
	}
	return fmt.Sprintf("; all of its array are %d_*", j.ID)
}

// jobs wants at least one job.
func jobs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return term.Usagef("%s: no job, want JOB... by number or name; see `%s --help`", term.OwnName(cmd),
			cmd.CommandPath())
	}
	return nil
}

// each has something done for every argument. The first error is returned, others are reported.
func each(cmd *cobra.Command, args []string, do func(string) error) (first error) {
	for _, arg := range args {
		failed := do(arg)
		err := client.ApiError(failed)
		switch {
		case err == nil:
		case term.ExitCode(err) == term.ExitUnreachable:
			return failed // the caller knows of which folder
		case first == nil:
			first = err
		default:
			fmt.Fprintln(cmd.ErrOrStderr(), "trainyard:", err)
		}
	}
	return first
}

// jobNames offers the jobs that are not done, as far as a manager answers soon.
func jobNames(to *client.Target) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		c, err := to.Dial()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		doc, err := c.Jobs(cmd.Context(), api.Filter{States: unfinished, Limit: 1000})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for i := range doc.Jobs {
			for _, name := range []string{strconv.Itoa(doc.Jobs[i].ID) + "\t" + doc.Jobs[i].Name, doc.Jobs[i].Name} {
				if strings.HasPrefix(name, typed) && name != "" {
					names = append(names, name)
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// unfinished are the states of jobs that are not done.
var unfinished = []string{"held", "waiting", "starting", "running", "stopping"}

// Verbs returns the verbs about jobs and what they run on.
// alone runs jobs where no manager serves.
func Verbs(alone client.Own) []*cobra.Command {
	return []*cobra.Command{
		newRun(alone),
		newSubmit(),
		newSbatch(),
		newPs(),
		newTopVerb(),
		newLogs(),
		newAttach(),
		newWhy(),
		newExplain(),
		newUsage(),
		newWait(),
		newCancel(), newPause(), newResume(), newRequeue(), newResize(), newEdit(), newPriority(),
		newEvents(),
		newClean(),
		newNodes(), newDrain(), newUndrain(),
		newToken(),
		newContext(),
		newConnect(),
	}
}
