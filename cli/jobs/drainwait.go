package jobs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/sched"
)

// holdouts are the jobs that hold what is drained.
type holdouts struct {
	c    *api.Client
	gpus []string // that are drained, by name or number; none = all
	w    io.Writer
}

const (
	// holdoutsEvery is how often it is asked who is left.
	holdoutsEvery = 500 * time.Millisecond
	// mostHoldouts is how many are named.
	mostHoldouts = 20
)

// report names the jobs that drain waits for and, where it is to wait, returns once none is left.
func (h *holdouts) report(ctx context.Context, wait bool) error {
	left, err := h.left(ctx)
	if err != nil {
		return err
	}
	if err = h.name(ctx, left); err != nil || !wait {
		return err
	}
	tick := time.NewTicker(holdoutsEvery)
	defer tick.Stop()
	for len(left) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if left, err = h.left(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintln(h.w, "no job is left on it")
	return nil
}

// left returns the numbers of the jobs that hold what is drained, in ascending order.
func (h *holdouts) left(ctx context.Context) (ids []int, err error) {
	doc, err := h.c.Nodes(ctx)
	for i := range doc.GPUs {
		name := doc.GPUs[i].Name
		if len(h.gpus) == 0 || slices.Contains(h.gpus, name) || slices.Contains(h.gpus, strconv.Itoa(i)) {
			ids = append(ids, doc.GPUs[i].Jobs...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// name says which jobs go on, those that may not be stopped for others first, and how each is ended.
func (h *holdouts) name(ctx context.Context, ids []int) error {
	if len(ids) == 0 {
		return nil
	}
	doc, err := h.c.Jobs(ctx, api.Filter{States: []string{"starting", "running", "stopping"}})
	if err != nil {
		return err
	}
	jobs := slices.DeleteFunc(doc.Jobs, func(j api.Job) bool { return !slices.Contains(ids, j.ID) })
	slices.SortStableFunc(jobs, func(a, b api.Job) int { return rank(&a) - rank(&b) })
	for i := range jobs[:min(len(jobs), mostHoldouts)] {
		j := &jobs[i]
		said := "goes on"
		if j.Protected {
			said = "may not be stopped for others, so that drain waits for its end"
		}
		fmt.Fprintf(h.w, "%s %s; `trainyard requeue %d` ends it here%s\n", api.Printable(client.JobTitle(j)), said,
			j.ID, h.stake(ctx, j.ID))
	}
	if more := len(jobs) - mostHoldouts; more > 0 {
		fmt.Fprintf(h.w, "so do %s more\n", term.Counted(more, "job"))
	}
	return nil
}

// stake says what a job loses if it is stopped now; "" = less than a second, or it is not known.
func (h *holdouts) stake(ctx context.Context, id int) string {
	doc, err := h.c.Why(ctx, strconv.Itoa(id), 0, 0)
	switch {
	case err != nil: // it may have ended by now
	case doc.StakeSec >= 1:
		return fmt.Sprintf(" (loses %s of its run)", text.Work(sched.Seconds(doc.StakeSec)))
	default:
		if open := unseen(&doc.Job); open != "" {
			return " (" + open + ")"
		}
	}
	return ""
}

// unseen says how much of the work of a job that was never seen to save would be lost by a stop if it does not do so
// then; "" = less than a second, or nothing.
func unseen(j *api.Job) string {
	if j.UnsavedSec < 1 || j.Saves == sched.Seen.String() || j.Saves == sched.Proven.String() {
		return ""
	}
	return text.Work(sched.Seconds(j.UnsavedSec)) + " of work not seen saved so far"
}

// openWork is how much work of the jobs that run would be lost by a stop, as unseen says it, by number. It is asked for
// before they are stopped; where it is not known nothing is said of it.
func openWork(ctx context.Context, c *api.Client) map[int]string {
	said := make(map[int]string)
	doc, err := c.Jobs(ctx, api.Filter{States: []string{"running"}})
	if err != nil {
		return said // what is wrong the request itself says
	}
	for i := range doc.Jobs {
		if open := unseen(&doc.Jobs[i]); open != "" {
			said[doc.Jobs[i].ID] = "; " + open
		}
	}
	return said
}

// rank is 0 of a job that may not be stopped for others, else 1.
func rank(j *api.Job) int {
	if j.Protected {
		return 0
	}
	return 1
}
