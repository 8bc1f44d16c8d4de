package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// served returns the manager to which the jobs are submitted: one that answers in the state folder, unless flags ask
// for a manager of their own; nil = there is none.
//
// A host that --context names must answer: no command runs jobs in its place.
func (f *runFlags) served(cmd *cobra.Command) (*api.Client, error) {
	own := f.own(cmd)
	if own != "" && f.once.Key != "" {
		return nil, term.Usagef("--%s asks for a manager of its own, and --key is for jobs that are submitted; want "+
			"one of them", own)
	}
	if own != "" && f.context != "" {
		return nil, term.Usagef("--%s asks for a manager of its own, and --context %s for another one; want one "+
			"of them", own, f.context)
	}
	if own != "" {
		return nil, nil
	}
	to := f.target()
	c, err := to.Dial()
	if err == nil {
		client.Outlast(cmd, c)
		if _, err = c.Info(cmd.Context()); err == nil {
			to.Announce(cmd)
			return c, nil
		}
		_ = c.Close()
	}
	if errors.Is(err, api.ErrTimeout) { // one is there
		return nil, client.ApiError(err)
	}
	if to.Remote() || f.once.Key != "" || term.ExitCode(err) == term.ExitUsage {
		return nil, client.ApiError(err)
	}
	return nil, nil
}

// target is the host that the flags name.
func (f *runFlags) target() client.Target { return client.Target{State: f.state, Context: f.context} }

// own returns the first flag given that asks for a manager of the jobs' own; "" = none.
func (f *runFlags) own(cmd *cobra.Command) string {
	for _, flag := range []string{"slots", "ports", "system", "set", "variability", "budget", "jobs-out", "events-out",
		"report"} {
		if cmd.Flags().Changed(flag) {
			return flag
		}
	}
	return ""
}

// runServed hands jobs in and follows them to their end. Who interrupts leaves them alone.
func (f *runFlags) runServed(cmd *cobra.Command, c *api.Client, args []string) error {
	s, err := f.submission(cmd, args)
	if err != nil {
		return err
	}
	to := f.target()
	doc, err := f.once.Submit(cmd, &to, c, &s, args)
	switch {
	case err != nil:
		return client.ApiError(err)
	case f.dry:
		return term.WriteText(cmd.OutOrStdout(), planText(&doc, term.WidthOf(cmd.OutOrStdout()), time.Now()))
	}
	names := make([]string, len(doc.Jobs))
	for i := range doc.Jobs {
		names[i] = strconv.Itoa(doc.Jobs[i].ID)
	}
	if !f.quiet {
		fmt.Fprint(cmd.ErrOrStderr(), f.shell.took)
		fmt.Fprintf(cmd.ErrOrStderr(), "submitted as job %s; Ctrl-C leaves it alone, "+
			"`trainyard logs -f %s` comes back\n%s", span(names), names[0], f.sameNames(cmd, &doc)+jobNotes(&doc))
	}
	if len(names) == 1 && !f.json {
		_, err = c.Logs(cmd.Context(), names[0], api.LogOptions{Attempt: 1, Follow: true, Tail: -1},
			outputTo(cmd.OutOrStdout(), cmd.ErrOrStderr(), false))
	} else {
		err = f.follow(cmd, c, &doc)
	}
	if errors.Is(err, context.Canceled) {
		return f.left(cmd, c, names)
	}
	if err != nil {
		return client.ApiError(err)
	}
	jobs, err := waitFor(cmd.Context(), c, names)
	if err != nil {
		return client.ApiError(err)
	}
	if err := f.servedReport(cmd, c, jobs); err != nil {
		return err
	}
	if failed := jobs[0].Failure; len(names) == 1 && !f.json && failed != nil {
		failed.Tail = nil // it was shown
	}
	return firstFailed(jobs, f.propagate)
}

// servedReport says how jobs ended: a document if it is wanted, a table where there are several, nothing behind the
// output of one.
func (f *runFlags) servedReport(cmd *cobra.Command, c *api.Client, jobs []api.Job) error {
	if !f.json && len(jobs) == 1 {
		return nil
	}
	doc, err := c.Jobs(cmd.Context(), api.Filter{Limit: 1}) // for the unit and the system
	if err != nil {
		return client.ApiError(err)
	}
	doc.Total, doc.Jobs = len(jobs), jobs
	if f.json {
		return term.WriteJSON(cmd.OutOrStdout(), &doc)
	}
	return new(psFlags).table(cmd.OutOrStdout(), cmd.ErrOrStderr(), &doc)
}

// span lists numbers that follow each other.
func span(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return names[0] + " to " + names[len(names)-1]
}

const (
	secondPress = 2 * time.Second  // how soon a second interrupt means that the jobs are to end
	cancelLimit = 30 * time.Second // how long the manager may take to make that durable
)

// left says that the jobs go on. Another interrupt soon after ends them, as far as the user confirms it.
func (f *runFlags) left(cmd *cobra.Command, c *api.Client, names []string) error {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt)
	defer signal.Stop(again)
	fmt.Fprintf(cmd.ErrOrStderr(), "\njob %s goes on; `trainyard logs -f %s` comes back, Ctrl-C once more asks to "+
		"cancel\n", span(names), names[0])
	select {
	case <-again:
	case <-time.After(secondPress):
		return &term.CodedError{Code: term.ExitInterrupted, Err: fmt.Errorf("interrupted; job %s goes on", span(names))}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "cancel job %s? [y/N] ", span(names))
	var answer string
	_, _ = fmt.Fscanln(cmd.InOrStdin(), &answer)
	if !strings.EqualFold(answer, "y") {
		return &term.CodedError{Code: term.ExitInterrupted, Err: fmt.Errorf("interrupted; job %s goes on", span(names))}
	}
	ctx, stop := context.WithTimeout(context.Background(), cancelLimit)
	defer stop()
	err := each(cmd, names, func(job string) error {
		_, err := c.Cancel(ctx, job)
		return err
	})
	if err != nil {
		return client.ApiError(err)
	}
	return &term.CodedError{Code: term.ExitInterrupted, Err: errors.New("cancelled")}
}

// happened is what users see of a line of the log.
type happened struct {
	Event   string  `json:"event"`
	Job     int     `json:"job"`
	Attempt int     `json:"attempt"`
	Outcome string  `json:"outcome"`
	Code    int     `json:"code"`
	Time    float64 `json:"time"`
	Text    string  `json:"text"`
}

// follow writes in lines what happens to the jobs until all are done.
func (f *runFlags) follow(cmd *cobra.Command, c *api.Client, doc *api.Submitted) error {
	names := make(map[int]string)
	for i := range doc.Jobs {
		names[doc.Jobs[i].ID] = doc.Jobs[i].Name
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	over := make(chan error, 1)
	go func() {
		ids := make([]string, len(doc.Jobs))
		for i := range doc.Jobs {
			ids[i] = strconv.Itoa(doc.Jobs[i].ID)
		}
		_, err := waitFor(ctx, c, ids)
		over <- err
		stop()
	}()
	err := c.Events(ctx, -1, func(_ uint64, line []byte) error {
		h := happened{Job: -1}
		if json.Unmarshal(line, &h) != nil || f.quiet {
			return nil
		}
		if name, ours := names[h.Job]; ours && happenedText(&h) != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "job %d %s: %s\n", h.Job, name, happenedText(&h))
		}
		return nil
	})
	if cmd.Context().Err() != nil {
		return cmd.Context().Err()
	}
	select {
	case err = <-over: // which ended the events
	default:
	}
	return err
}

// happenedText puts one event into a sentence, "" if it means nothing to users.
func happenedText(h *happened) string {
	switch h.Event {
	case "arrived":
		return "submitted"
	case "started":
		return fmt.Sprintf("attempt %d runs", h.Attempt)
	case "ended":
		if h.Code != 0 {
			return fmt.Sprintf("attempt %d %s with exit code %d", h.Attempt, h.Outcome, h.Code)
		}
		return fmt.Sprintf("attempt %d %s", h.Attempt, h.Outcome)
	case "start-failed":
		return fmt.Sprintf("attempt %d could not start: %s", h.Attempt, api.Printable(h.Text))
	}
	return ""
}
