package server

import (
	"context"
	"fmt"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// foreseeing is how long a plan may be thought about.
const foreseeing = 3 * time.Second

// foresee fills in when jobs would start and end, and what that rests on.
func (s *Server) foresee(ctx context.Context, jobs []jobfile.Job, doc *api.Submitted) error {
	done, err := s.think(ctx)
	if err != nil {
		return err
	}
	defer done()
	limited, cancel := context.WithTimeout(ctx, foreseeing)
	defer cancel()
	f, first, err := s.o.Manager.Plan(limited, jobs)
	if err != nil && (ctx.Err() != nil || limited.Err() == nil) {
		return err
	}
	x := whyTeller{Renderer: s.says(nil)}
	x.Forecast = f
	doc.Rests = x.Rests()
	docs := doc.Jobs
	for i := range docs {
		docs[i] = api.Estimate{ID: int(sched.None), Name: jobs[i].Spec.Name}
		if e := f.Of(first + sched.JobID(i)); e != nil {
			docs[i].Start, docs[i].End = x.within(e.Start), x.within(e.End)
		}
	}
	return nil
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
	for _, n := range []int{r.Min, r.Want, r.Max} {
		if n < 1 || n > jobfile.MaxGPUs {
			return api.Job{}, fmt.Errorf("%w: %d %ss, want 1 to %d", api.ErrMalformed, n, s.o.Unit, jobfile.MaxGPUs)
		}
	}
	err := s.o.Manager.Change(ctx, id, func(c *sched.JobChange) {
		c.GPUs = sched.Range{Min: int32(r.Min), Want: int32(r.Want), Max: int32(r.Max)}
	})
	if err != nil {
		return api.Job{}, fmt.Errorf("job %d: %w", id, err)
	}
	return s.one(ctx, id)
}
