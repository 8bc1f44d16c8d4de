package server

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// editor changes jobs that were submitted.
type editor struct{ s *Server }

type editInput struct {
	aboutJob
	Body api.Edit
}

// edit changes keys of a job.
func (e editor) edit(ctx context.Context, in *editInput) (doc api.Edited, err error) {
	c := callerOf(ctx)
	gpus, stake := 0, time.Duration(0)
	err = e.s.o.Host.Look(ctx, func(v *sched.View) {
		if j := v.Job(c.job); j.HoldsDevices() {
			gpus, stake = len(j.GPUs), text.Stake(v, j)
		}
	})
	if err != nil {
		return doc, err
	}
	was, err := e.s.one(ctx, c.job)
	if err != nil {
		return doc, err
	}
	now, next, err := e.s.o.Site.(Editor).Edit(onlyIfSeen(ctx), c.who, c.job, &in.Body)
	if err != nil {
		return doc, fmt.Errorf("job %d: %w", c.job, err)
	}
	doc, err = e.edited(ctx, c.job, now, next)
	if err == nil && gpus > 0 && (gpus < doc.Job.Min || gpus > doc.Job.Max) {
		doc.Notes = append(doc.Notes, text.OffWidth(gpus, stake))
	}
	if err == nil {
		doc.Notes = append(doc.Notes, savesElsewhere(&was, &doc.Job)...)
	}
	return doc, err
}

// savesElsewhere says that a job which has run will look for what it saved in another folder.
func savesElsewhere(was, now *api.Job) (notes []string) {
	saved := []string{sched.Seen.String(), sched.Proven.String(), sched.ResumesNot.String()}
	if !slices.Contains(saved, was.Saves) || was.Paths == nil || now.Paths == nil ||
		was.Paths.Checkpoint == now.Paths.Checkpoint {
		return nil
	}
	return []string{"finds what it has saved no more at its next start, unless you copy it to " +
		cmp.Or(now.Paths.Checkpoint, "the folder that it is given")}
}

// edited returns how a job stands, with a note if its priority is new and the system does not look at it.
func (e editor) edited(ctx context.Context, job sched.JobID, now, next []string) (doc api.Edited, err error) {
	doc = api.Edited{Schema: "trainyard.edited/v1", Now: append([]string{}, now...), Next: append([]string{}, next...)}
	if doc.Job, err = e.s.one(ctx, job); err != nil || !slices.Contains(now, "priority") {
		return doc, err
	}
	if h := e.s.o.Host.Header(); !system.LooksAtPriority(&h) {
		err = e.s.o.Host.Look(ctx, func(v *sched.View) { doc.Notes = text.Unranked(v.Job(job), h.System) })
	}
	return doc, err
}

type priorityInput struct {
	aboutJob
	Body api.Priority
}

// prioritize gives a job another priority.
func (e editor) prioritize(ctx context.Context, in *priorityInput) (doc api.Edited, err error) {
	c, given := callerOf(ctx), 0
	for _, is := range []bool{in.Body.Priority != nil, in.Body.Above != "", in.Body.Below != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return doc, fmt.Errorf("%w: %d of priority, above and below, want one of them", api.ErrMalformed, given)
	}
	if in.Body.Priority != nil {
		err = e.rank(ctx, c.who, c.job, int64(*in.Body.Priority))
	} else {
		err = e.order(ctx, &c, cmp.Or(in.Body.Above, in.Body.Below), in.Body.Above != "")
	}
	if err != nil {
		return doc, fmt.Errorf("job %d: %w", c.job, err)
	}
	return e.edited(ctx, c.job, []string{"priority"}, nil)
}

// rank gives a job a priority, if the one who asks may: to lower it, he may.
func (e editor) rank(ctx context.Context, who api.Who, job sched.JobID, priority int64) error {
	if priority < math.MinInt32 || priority > math.MaxInt32 {
		return fmt.Errorf("%w: priority %d, want a whole number from %d to %d", api.ErrRefused, priority, math.MinInt32,
			math.MaxInt32)
	}
	was := int64(0)
	if err := e.s.o.Host.Look(ctx, func(v *sched.View) { was = int64(v.Job(job).Spec.Priority) }); err != nil {
		return err
	}
	if r, able := e.s.o.Site.(Ranking); able && (priority > was || priority != 0 && e.ignored()) {
		if err := r.MayRank(who, int32(priority)); err != nil {
			return err
		}
	}
	if job == callerOf(ctx).job {
		ctx = onlyIfSeen(ctx)
	}
	return e.s.o.Site.Change(ctx, who, job, func(c *sched.JobChange) { c.Priority = int32(priority) })
}

// ignored reports whether priorities play no part.
func (e editor) ignored() bool {
	h := e.s.o.Host.Header()
	return system.IgnoresPriority(&h)
}

// order has the job that c is about be before another, or behind it. Where c may not raise it above one of his own,
// that one is lowered.
func (e editor) order(ctx context.Context, c *caller, name string, above bool) error {
	other, err := e.s.find(ctx, name)
	if err != nil {
		return err
	}
	if other == c.job {
		return fmt.Errorf("%w: job %q is the job itself, want another", api.ErrMalformed, name)
	}
	var mine, its sched.JobSpec
	var ahead int64 // by so much it is before the other
	var over, gone bool
	err = e.s.o.Host.Look(ctx, func(v *sched.View) {
		over, gone = v.Job(c.job).State == sched.Done, v.Job(other).State == sched.Done
		mine, its = *v.Job(c.job).Spec, *v.Job(other).Spec
		ahead = int64(mine.Priority) - int64(its.Priority)
	})
	if err != nil {
		return err
	}
	switch {
	case c.who.Role < api.Admin && its.User != c.who.Name:
		return api.Refusal(http.StatusForbidden, "job %q is one of %s: to order jobs next to it takes the role admin",
			name, its.User)
	case over:
		return api.ErrDone
	case gone:
		return fmt.Errorf("job %q: %w, want another", name, api.ErrDone)
	case above && ahead > 0, !above && ahead < 0:
		return nil // it is
	case !above:
		return e.rank(ctx, c.who, c.job, int64(mine.Priority)-ahead-1)
	}
	raised := int64(mine.Priority) - ahead + 1
	if r, able := e.s.o.Site.(Ranking); able && raised <= math.MaxInt32 &&
		r.MayRank(c.who, int32(raised)) != nil {
		return e.rank(ctx, c.who, other, int64(its.Priority)+ahead-1)
	}
	return e.rank(ctx, c.who, c.job, raised)
}
