package whatif

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/sched"
)

// mostRequeued is how many holders are tried.
const mostRequeued = 4

// requeue verifies that the job runs if the user of one that may not be stopped for others puts that back in the queue,
// the one that loses least first. It must run, not merely be given GPUs: once they are free, the system may think
// otherwise.
func (s *search) requeue(o *RemedyOptions) error {
	v := s.m.View()
	var holders []sched.JobID
	for id := range v.Jobs {
		if j := &v.Jobs[id]; j.Attempt == sched.Running && o.Unsaved.Protects(j) && !j.Cancel && !j.Requeued {
			holders = append(holders, sched.JobID(id))
		}
	}
	slices.SortStableFunc(holders, func(a, b sched.JobID) int { return cmp.Compare(s.loses(a), s.loses(b)) })
	for _, h := range holders[:min(len(holders), mostRequeued)] {
		ran, err := s.runsWithout(h, o)
		if err != nil {
			return err
		}
		if s.found.Tried++; ran != nil && s.take(ran, s.job, Remedy{Change: RequeueOther, Spec: v.Job(s.job).Spec,
			Requeue: h, Loses: s.loses(h)}) {
			return nil
		}
	}
	return nil
}

// loses returns the work that job id loses if it is stopped now.
func (s *search) loses(id sched.JobID) time.Duration {
	lost, _ := s.m.View().Job(id).LosesBy(s.m.View().Now, 0)
	return lost
}

// runsWithout returns what a fork looks like once the job runs although no one but job h has ended its attempt; nil if
// it does not within the time to the next turn.
func (s *search) runsWithout(h sched.JobID, o *RemedyOptions) (*sched.View, error) {
	f, err := s.m.fork(nil)
	if err != nil {
		return nil, err
	}
	v := f.state.View()
	left := make([]time.Duration, len(v.Jobs))
	for i := range left {
		left[i] = century
	}
	w := o.World
	w.Arrivals, w.Runtime.StartDelay, w.Runtime.StopDelay = nil, 0, 0
	d, err := s.m.simulate(&w, left)
	if err != nil {
		return nil, err
	}
	runs := func() bool { return v.Job(s.job).Attempt == sched.Running }
	b := bounded{Driver: d, until: v.Now.Add(nextTurn), events: 10_000, enough: runs}
	stop := sched.Event{Time: v.Now, Kind: sched.JobCommanded, Job: h, Code: int32(sched.RequeueJob)}
	if err := engine.Run(s.ctx, f.state, &first{bounded: b, event: stop}, f.dec, engine.Options{}); err != nil {
		return nil, err
	}
	if !runs() {
		return nil, s.ctx.Err()
	}
	return v, s.ctx.Err()
}

// first is a driver that has something to say first.
type first struct {
	bounded
	event sched.Event
}

// Sync says it.
func (d *first) Sync(ctx context.Context, v *sched.View) ([]sched.Event, error) {
	events, err := d.bounded.Sync(ctx, v)
	return append(events, d.event), err
}
