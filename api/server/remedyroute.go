package server

import (
	"context"
	"fmt"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/whatif"
)

type remedyInput struct {
	aboutJob
	Body api.UseRemedy
}

// retrying is how long a remedy may be tried again: as long as why may try them at most.
const retrying = 3 * time.Second

// remedied carries remedies out.
type remedied struct{ s *Server }

// remedyID names a remedy among those of its job.
func remedyID(doc *api.Remedy) string { return doc.Change + ":" + doc.Value }

// use tries a remedy again, and carries it out if it still starts the job.
func (r remedied) use(ctx context.Context, in *remedyInput) (api.Remedied, error) {
	id := callerOf(ctx).job
	again, doc, err := r.again(ctx, id, in.Body.ID)
	if err == nil {
		err = r.carryOut(ctx, id, again, &doc)
	}
	if err != nil {
		return api.Remedied{}, fmt.Errorf("job %d: %w", id, err)
	}
	job, err := r.s.one(ctx, id)
	return api.Remedied{Schema: "trainyard.remedied/v1", Remedy: doc, Job: job}, err
}

// again looks for the remedies of a job at this moment, and returns the one that is named. Under If-Match the job must
// stand as it was seen.
func (r remedied) again(ctx context.Context, id sched.JobID, name string) (*whatif.Remedy, api.Remedy, error) {
	done, err := r.s.think(ctx)
	if err != nil {
		return nil, api.Remedy{}, err
	}
	defer done()
	a, err := r.s.o.Host.Why(ctx, id, WhyOptions{Remedies: retrying})
	if err != nil {
		return nil, api.Remedy{}, err
	}
	if tag := callerOf(ctx).seen; tag != "" {
		if stands := tag.refuse(a.View, id, false); stands != nil {
			return nil, api.Remedy{}, stands
		}
	}
	x := whyWriter{Renderer: r.s.says(a.View), a: a, id: id}
	if a.Remedies != nil {
		for i := range a.Remedies.List {
			doc := x.remedy(&a.Remedies.List[i])
			if doc.ID == name {
				return &a.Remedies.List[i], doc, nil
			}
		}
	}
	return nil, api.Remedy{}, fmt.Errorf("remedy %q %w: want one that trainyard why %d has now", name,
		api.ErrNoHelp, id)
}

// carryOut does what a remedy says, if the caller may.
func (r remedied) carryOut(ctx context.Context, id sched.JobID, m *whatif.Remedy, doc *api.Remedy) error {
	who, world := callerOf(ctx).who, r.s.o.Site
	switch m.Change {
	case whatif.OtherGPUs:
		return world.Change(onlyIfSeen(ctx), who, id, func(c *sched.JobChange) { c.GPUs = m.Spec.GPUs })
	case whatif.RequeueOther:
		right := site.Right{Operation: "requeue", Least: api.User, Own: true, Job: m.Requeue,
			Owner: func(ctx context.Context) (string, error) { return r.s.ownerOf(ctx, m.Requeue) }}
		if err := world.May(ctx, who, right); err != nil {
			return err
		}
		return world.Command(ctx, who, m.Requeue, sched.RequeueJob)
	case whatif.Undrain:
		if err := world.May(ctx, who, site.Right{Operation: "undrain", Least: api.Admin, Job: sched.None}); err != nil {
			return err
		}
		if m.Machine || len(m.Drained) == 0 {
			if err := world.Drain(ctx, who, nil, false); err != nil {
				return err
			}
		}
		if len(m.Drained) > 0 {
			return world.DrainGPUs(ctx, who, m.Drained, false)
		}
		return nil
	}
	return fmt.Errorf("%w: %s takes another submission: %s", api.ErrRefused, doc.ID, doc.Text)
}
