package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

func newTopVerb() *cobra.Command {
	var to client.Target
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch GPUs, jobs and events on one screen",
		Long: `Shows the GPUs with their jobs, use, memory and power, the queue, and what
happens, and lets you cancel, pause and ask by a key; ? lists them. It fits 80
columns and 24 lines. What is not a terminal is printed once, as lines.`,
		Args: term.Exactly(),
		RunE: to.Asking(showTop),
	}
	to.AddFlags(cmd)
	return cmd
}

// showTop shows the screen until its user leaves.
func showTop(cmd *cobra.Command, c *api.Client, _ []string) error {
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	first, err := lookAt(ctx, c)
	if err != nil {
		return err
	}
	if _, tty := term.Terminal(cmd.OutOrStdout()); !tty || os.Getenv("TERM") == "dumb" {
		return topLines(cmd, &first)
	}
	model := newTop(requests(ctx, c))
	model.plain, _ = cmd.Flags().GetBool("no-color")
	model.plain = model.plain || os.Getenv("NO_COLOR") != ""
	model.look(first)
	p := tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(cmd.InOrStdin()), tea.WithOutput(cmd.OutOrStdout()))
	go watchBoard(ctx, c, p.Send)
	go watchEvents(ctx, c, p.Send)
	_, err = p.Run()
	if cmd.Context().Err() != nil || errors.Is(err, tea.ErrInterrupted) {
		return nil // who leaves by Ctrl-C leaves
	}
	return err
}

// lookAt looks at a manager once.
func lookAt(ctx context.Context, c *api.Client) (b board, err error) {
	if b.nodes, err = c.Nodes(ctx); err != nil {
		return b, err
	}
	b.nodes.GPUs = slices.DeleteFunc(b.nodes.GPUs, func(g api.GPU) bool { return g.State == "forgotten" })
	b.jobs, err = c.Jobs(ctx, api.Filter{States: unfinished})
	b.at = time.Now()
	return b, err
}

// topLines writes one look as lines.
func topLines(cmd *cobra.Command, b *board) error {
	out := cmd.OutOrStdout()
	if err := term.WriteText(out, nodesText(&b.nodes, term.WidthOf(out))); err != nil || len(b.jobs.Jobs) == 0 {
		return err
	}
	if err := term.WriteText(out, "\n"); err != nil {
		return err
	}
	return new(psFlags).table(out, cmd.ErrOrStderr(), &b.jobs)
}

// lookEvery is how old what is shown may be: times, use and power change without an event. Where a look takes long, as
// with very many jobs, it is lookRest times that: a screen must not keep the manager busy.
const (
	lookEvery = time.Second
	lookRest  = 10
)

// watchBoard writes one look after the other until ctx ends.
func watchBoard(ctx context.Context, c *api.Client, report func(tea.Msg)) {
	for ctx.Err() == nil {
		began := time.Now()
		b, err := lookAt(ctx, c)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			report(lost{err})
		default:
			report(b)
		}
		pause(ctx, max(lookEvery, lookRest*time.Since(began)))
	}
}

// watchEvents says what happens until ctx ends. While there is no manager it waits for another.
func watchEvents(ctx context.Context, c *api.Client, report func(tea.Msg)) {
	from := int64(-1)
	for ctx.Err() == nil {
		_ = c.Events(ctx, from, func(seq uint64, line []byte) error {
			from = int64(seq) + 1
			h := happened{Job: -1}
			if json.Unmarshal(line, &h) == nil && h.Job >= 0 {
				report(happens(h))
			}
			return nil
		})
		pause(ctx, lookEvery)
	}
}

// pause waits for a while, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// requests carries out what the screen wants done with a job.
func requests(ctx context.Context, c *api.Client) func(string, int) tea.Cmd {
	verbs := map[string]struct {
		do   func(context.Context, string) (api.Job, error)
		done string
	}{"cancel": {c.Cancel, "is cancelled"}, "pause": {c.Pause, "is paused"}, "resume": {c.Resume, "waits for its turn"}}
	return func(wanted string, job int) tea.Cmd {
		return func() tea.Msg {
			name := strconv.Itoa(job)
			switch wanted {
			case "why":
				return whyPage(ctx, c, name)
			case "logs":
				return logPage(ctx, c, name)
			}
			doc, err := verbs[wanted].do(ctx, name)
			if err != nil {
				return noted(term.OneLine(err.Error()))
			}
			return noted(client.JobTitle(&doc) + " " + verbs[wanted].done)
		}
	}
}

// logTail is how many of the last lines of an output a page gets: more than a screen has.
const logTail = 200

// logPage is the end of what a job wrote.
func logPage(ctx context.Context, c *api.Client, job string) tea.Msg {
	var b strings.Builder
	_, err := c.Logs(ctx, job, api.LogOptions{Tail: logTail}, func(o api.Output) error {
		b.WriteString(o.Text)
		return nil
	})
	switch {
	case err != nil:
		return noted(term.OneLine(err.Error()))
	case b.Len() == 0:
		return noted("job " + job + " has written nothing yet")
	}
	return pageText{"the end of what job " + job + " wrote; `trainyard logs -f " + job + "` follows it", b.String()}
}

// whyPage is why a job stands as it does, as far as can be reported soon.
func whyPage(ctx context.Context, c *api.Client, job string) tea.Msg {
	doc, err := c.Why(ctx, job, api.AsSuits, tryFor)
	if err != nil {
		return noted(term.OneLine(err.Error()))
	}
	return pageText{"why job " + job + " stands as it does; `trainyard why " + job + "` says the same",
		whyText(&doc, term.DefaultWidth, time.Now())}
}
