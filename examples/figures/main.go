// Command figures asks a host for its figures by the Go client: what each user got and lost, how many GPUs are held and
// are expected to be, and, where it is asked for, the attempts of a job, a remedy, what would have been under other
// systems, all that happened, or what changes.
//
//	go run ./examples/figures -state DIR [-job N] [-remedy ID] [-systems A,B] [-history FILE] [-follow]
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/trainyard/trainyard/api"
)

// asked is what is asked for.
type asked struct {
	state, job, remedy, systems, history string
	follow                               bool
}

func main() {
	var a asked
	flag.StringVar(&a.state, "state", "", "state folder of the manager")
	flag.StringVar(&a.job, "job", "", "show the attempts of a job")
	flag.StringVar(&a.remedy, "remedy", "", "carry a remedy of the job out, by its id")
	flag.StringVar(&a.systems, "systems", "", "simulate the log under these systems: A,B")
	flag.StringVar(&a.history, "history", "", "write what happened so far to a file")
	flag.BoolVar(&a.follow, "follow", false, "show what changes, until it is interrupted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := a.show(ctx, os.Stdout)
	interrupted := ctx.Err() != nil
	stop()
	if err != nil && !interrupted {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// show writes all that is asked for.
func (a *asked) show(ctx context.Context, w io.Writer) error {
	c, err := api.Dial(a.state)
	if err != nil {
		return err
	}
	defer c.Close()
	f := api.FiguresOf(c)
	err = cmp.Or(a.sums(ctx, f, w), a.jobs(ctx, c, w))
	if err == nil && a.history != "" {
		err = save(ctx, f, a.history)
	}
	if err == nil && a.systems != "" {
		err = simulate(ctx, api.WhatIfsOf(c), strings.Split(a.systems, ","), w)
	}
	if err == nil && a.follow {
		err = f.Board(ctx, func(whole bool, b *api.Board) error {
			_, bad := fmt.Fprintf(w, "event %d: %d of %d held, %d wait; %d rows, all of them: %t\n", b.Seq,
				b.Tiles.Busy, b.Tiles.GPUs, b.Tiles.Waiting, len(b.Jobs), whole)
			return bad
		})
	}
	return err
}

// sums writes what users got, where GPU-hours went, and what is held and expected to be.
func (a *asked) sums(ctx context.Context, f api.Figures, w io.Writer) error {
	users, err := f.Users(ctx, api.Range{})
	if err != nil {
		return err
	}
	for _, u := range users.Users {
		fmt.Fprintf(w, "%s: %.3f GPU-hours, %.0f%%, of which %.3f were lost\n", cmp.Or(u.User, "no one"), u.Hours,
			100*u.Share, u.Lost)
	}
	losses, err := f.Losses(ctx, api.Range{})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "useful: %.3f of %.3f GPU-hours\n", losses.By["useful"], losses.Hours)
	held, err := f.Series(ctx, "held", api.Range{}, 5)
	if err != nil {
		return err
	}
	for _, p := range held.Points {
		fmt.Fprintf(w, "%s: %.1f held, %g to %g\n", p.At, p.Mean, p.Low, p.High)
	}
	ahead, err := f.Forecast(ctx)
	for _, b := range ahead.Busy[:min(len(ahead.Busy), 5)] {
		fmt.Fprintf(w, "%s: %g to %g held in 8 of 10 futures\n", b.At, b.Low, b.High)
	}
	return err
}

// jobs writes the attempts of a job, and carries a remedy out.
func (a *asked) jobs(ctx context.Context, c *api.Client, w io.Writer) error {
	if a.job == "" {
		return nil
	}
	doc, err := api.FiguresOf(c).Attempts(ctx, a.job)
	for _, x := range doc.Attempts {
		fmt.Fprintf(w, "attempt %d: %s on %s, by event %d\n", x.Number, x.Ordered, strings.Join(x.GPUs, " "), x.Given)
	}
	if err != nil || a.remedy == "" {
		return err
	}
	used, err := c.Remedy(ctx, a.job, a.remedy)
	if err == nil {
		fmt.Fprintf(w, "job %d: %s\n", used.Job.ID, used.Remedy.Text)
	}
	return err
}

// save writes what happened so far to a file.
func save(ctx context.Context, f api.Figures, path string) error {
	doc, err := f.History(ctx)
	if err != nil {
		return err
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// simulate asks what would have been, and takes that back when ctx ends.
func simulate(ctx context.Context, ask api.WhatIfs, systems []string, w io.Writer) error {
	q, err := ask.Ask(ctx, api.WhatIfQuestion{Systems: systems})
	for err == nil && q.State == api.WhatIfRunning {
		select {
		case <-time.After(time.Second):
			q, err = ask.Get(ctx, q.ID)
		case <-ctx.Done():
			q, err = ask.Cancel(context.WithoutCancel(ctx), q.ID)
		}
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "%s %s\n%s\n", q.State, q.Error, q.Result)
	}
	return err
}
