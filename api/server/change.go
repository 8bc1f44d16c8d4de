package server

import (
	"context"
	"fmt"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/sched"
)

// foreseeing is how long a plan may be thought about.
const foreseeing = 3 * time.Second

// foresee fills in when the jobs of a batch would start and end, and what that rests on. A batch without a plan has no
// such estimates.
func (s *Server) foresee(ctx context.Context, batch site.Batch, doc *api.Submitted) error {
	planner, able := batch.(Planner)
	if !able {
		return nil
	}
	done, err := s.think(ctx)
	if err != nil {
		return err
	}
	defer done()
	limited, cancel := context.WithTimeout(ctx, foreseeing)
	defer cancel()
	f, first, err := planner.Plan(limited)
	if err != nil && (ctx.Err() != nil || limited.Err() == nil) {
		return err
	}
	x := whyWriter{Renderer: s.says(nil)}
	x.Forecast = f
	doc.Rests = x.Rests()
	for i := range doc.Jobs {
		if e := f.Of(first + sched.JobID(i)); e != nil {
			doc.Jobs[i].Start, doc.Jobs[i].End = x.within(e.Start), x.within(e.End)
		}
	}
	return nil
}

type signalInput struct {
	aboutJob
	Body api.Signal
}

// signal sends a signal to processes of a job that runs.
func (e editor) signal(ctx context.Context, in *signalInput) (api.Job, error) {
	id := callerOf(ctx).job
	doc, err := e.s.one(ctx, id)
	switch {
	case err != nil:
		return doc, err
	case doc.State == "done":
		return doc, fmt.Errorf("job %d: %w", id, api.ErrDone)
	case doc.State != "running" && doc.State != "stopping":
		return doc, fmt.Errorf("job %d is %s, want one that runs: %w", id, doc.State, api.ErrRefused)
	}
	if err = e.s.o.Site.(Signaller).Signal(id, int32(doc.Attempt), in.Body); err != nil {
		err = fmt.Errorf("job %d: %w", id, err)
	}
	return doc, err
}

type resizeInput struct {
	aboutJob
	Body api.Resize
}

// resize gives a job another range of widths. What is left out of it is as in a job file: the fewest 1, as many wanted
// as there may be.
func (s *Server) resize(ctx context.Context, in *resizeInput) (api.Job, error) {
	id, r := callerOf(ctx).job, in.Body
	if r.Min == 0 {
		r.Min = 1
	}
	if r.Want == 0 {
		r.Want = r.Max
	}
	most := s.o.Site.Widest()
	for _, n := range []int{r.Min, r.Want, r.Max} {
		if n < 1 || n > most {
			return api.Job{}, fmt.Errorf("%w: %d %ss, want 1 to %d", api.ErrMalformed, n, s.o.Site.Unit(), most)
		}
	}
	err := s.o.Site.Change(onlyIfSeen(ctx), callerOf(ctx).who, id, func(c *sched.JobChange) {
		c.GPUs = sched.Range{Min: int32(r.Min), Want: int32(r.Want), Max: int32(r.Max)}
	})
	if err != nil {
		return api.Job{}, fmt.Errorf("job %d: %w", id, err)
	}
	return s.one(ctx, id)
}
