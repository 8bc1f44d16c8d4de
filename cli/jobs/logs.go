package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/manager/kept"
	"github.com/trainyard/trainyard/manager/store"
)

// logsFlags are the flags of logs as given.
type logsFlags struct {
	to      client.Target
	follow  bool
	since   time.Duration
	attempt int
	tail    int
	raw     bool
}

func newLogs() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use: "logs JOB", SuggestFor: []string{"log", "tail", "output"},
		Short: "Print what a job writes",
		Long: `Prints the output of a job, by number or name, or by 12_3 for a task of array
12: of its latest attempt, or with --follow of that and all that come, until the
job is done. What would do more to a terminal than write and colour is left out,
unless --raw is given.`,
		Example:           "  trainyard logs 3\n  trainyard logs resnet50 -f --tail 20",
		Args:              term.Exactly("JOB"),
		ValidArgsFunction: jobNames(&f.to),
		PreRunE:           f.check,
		RunE:              f.to.OrFolder(f.logs, f.kept),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	f.to.AddFlags(cmd)
	fs.BoolVarP(&f.follow, "follow", "f", false, "go on as it is written")
	fs.IntVar(&f.tail, "tail", -1, "only the last `N` lines of what is there")
	fs.DurationVar(&f.since, "since", 0, "only attempts that wrote something within `DURATION`, such as 1h")
	fs.IntVar(&f.attempt, "attempt", 0, "attempt `N`, or from there on with --follow (default: the latest)")
	fs.BoolVar(&f.raw, "raw", false, "as it was written, control sequences included")
	return cmd
}

func (f *logsFlags) check(cmd *cobra.Command, _ []string) error {
	set := cmd.Flags().Changed
	switch {
	case set("tail") && f.tail < 0:
		return term.Usagef("--tail %d, want >= 0", f.tail)
	case set("attempt") && (f.attempt <= 0 || f.attempt > math.MaxInt32):
		return term.Usagef("--attempt %d, want > 0 and at most %d", f.attempt, math.MaxInt32)
	case set("since") && f.since <= 0:
		return term.Usagef("--since %v, want > 0", f.since)
	}
	return nil
}

func (f *logsFlags) logs(cmd *cobra.Command, c *api.Client, args []string) error {
	o := api.LogOptions{Attempt: f.attempt, Follow: f.follow, Tail: f.tail}
	if f.since > 0 {
		o.Since = time.Now().Add(-f.since)
	}
	if f.follow {
		client.Outlast(cmd, c)
	}
	job, err := oneJob(cmd, c, args[0])
	if err != nil {
		return err
	}
	wrote, show := false, outputTo(cmd.OutOrStdout(), cmd.ErrOrStderr(), f.raw)
	end, err := c.Logs(cmd.Context(), job, o, func(piece api.Output) error {
		wrote = true
		return show(piece)
	})
	switch {
	case errors.Is(err, context.Canceled):
		return &term.CodedError{Code: term.ExitInterrupted, Err: fmt.Errorf("interrupted; job %s goes on", args[0])}
	case err != nil:
		return err
	}
	if !wrote && end.State == "done" && !f.to.Remote() {
		if failed := f.removed(cmd, c, job, end.Attempt); failed != nil {
			return failed
		}
	}
	return f.ended(cmd, c, job, &end)
}

// removed says that nothing is kept of what an attempt wrote, where that is so.
func (f *logsFlags) removed(cmd *cobra.Command, c *api.Client, job string, attempt int) error {
	doc, err := c.Job(cmd.Context(), job)
	if err != nil || attempt == 0 {
		return err
	}
	info, err := c.Info(cmd.Context())
	if err != nil {
		return err
	}
	path := shim.State(info.State).RunDir(int32(doc.ID), int32(attempt)).Output()
	if _, failed := os.Stat(path); !errors.Is(failed, fs.ErrNotExist) {
		return nil
	}
	why := "was removed (`trainyard clean`, `serve --keep`)"
	ended, bad := time.Parse(time.RFC3339Nano, doc.Ended)
	if bad == nil && ended.Before(store.RestoredAsOf(info.State)) {
		why = "is not here: the folder was restored from a backup, which has no outputs; look where it ran"
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "-- what %s wrote %s\n", client.JobTitle(&doc), why)
	return nil
}

// kept prints what is kept of the output of a job where no one serves.
func (f *logsFlags) kept(cmd *cobra.Command, dir kept.Folder, args []string) error {
	if f.follow {
		return client.Unserved(dir, "--follow needs one")
	}
	o := api.LogOptions{Attempt: f.attempt, Tail: f.tail}
	if f.since > 0 {
		o.Since = time.Now().Add(-f.since)
	}
	_, err := dir.Logs(cmd.Context(), args[0], o, outputTo(cmd.OutOrStdout(), cmd.ErrOrStderr(), f.raw))
	return err
}

// ended says on the side how the attempt failed whose output was reported, or what of it was saved.
func (f *logsFlags) ended(cmd *cobra.Command, c *api.Client, job string, end *api.OutputEnd) error {
	if end.State == "running" {
		return nil
	}
	doc, err := c.Job(cmd.Context(), job)
	if err != nil {
		return err
	}
	switch why := doc.Failure; {
	case why != nil && (why.Attempt == end.Attempt || why.Attempt == 0 && doc.Attempt == end.Attempt):
		fmt.Fprintf(cmd.ErrOrStderr(), "-- %s failed: %s\n", client.JobTitle(&doc), api.Printable(why.Text))
	case why == nil && doc.Text != "" && doc.Attempt == end.Attempt && doc.Outcome != "finished" && len(doc.GPUs) == 0:
		fmt.Fprintf(cmd.ErrOrStderr(), "-- %s stopped: %s\n", client.JobTitle(&doc), api.Printable(doc.Text))
	}
	return nil
}

// outputTo writes pieces of output as they come, and says on the side where another attempt starts.
func outputTo(w, side io.Writer, raw bool) func(api.Output) error {
	attempt := 0
	var clean api.Printer
	return func(o api.Output) error {
		if attempt != 0 && o.Attempt != attempt {
			fmt.Fprintf(side, "-- attempt %d\n", o.Attempt)
		}
		attempt = o.Attempt
		if raw {
			return term.WriteText(w, o.Text)
		}
		return term.WriteText(w, string(clean.Append(nil, []byte(o.Text))))
	}
}
