package whatif

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// System makes Deciders that know nothing yet, each alike the one that decides in the cluster: the same system,
// settings and knowledge.
type System func() (sched.Decider, error)

// Moment is a cluster at one instant, with what its system remembers. It is never changed.
type Moment struct {
	header eventlog.Header
	state  *engine.State // never run
	memory memory.Memory
	fresh  System
}

// Take copies the moment that v shows, of a log with header h, and what dec, who decides, remembers. It is to be called
// between two batches, by who runs the engine; what it returns keeps nothing of v and dec. What jobs said of themselves
// (Job.Spec) is shared, for it never changes.
func Take(h eventlog.Header, v *sched.View, dec sched.Memory, fresh System) (*Moment, error) {
	return NewMoment(h, *v, memory.Save(v, dec), fresh)
}

// NewMoment is Take for a view of which the memory was saved already, by memory.Save at the same instant.
func NewMoment(h eventlog.Header, v sched.View, memory memory.Memory, fresh System) (*Moment, error) {
	s, err := engine.Restore(h, v)
	if err != nil {
		return nil, fmt.Errorf("whatif: %w", err)
	}
	return &Moment{h, s, memory, fresh}, nil
}

// View returns what the cluster looked like, for reading.
func (m *Moment) View() *sched.View { return m.state.View() }

// fork is a copy to go on with.
type fork struct {
	state *engine.State
	dec   sched.Decider
}

// fork returns a copy of the moment in which fresh decides, or m's own system if that is nil.
func (m *Moment) fork(fresh System) (fork, error) {
	if fresh == nil {
		fresh = m.fresh
	}
	s, err := engine.Restore(m.header, *m.View())
	if err != nil {
		return fork{}, fmt.Errorf("whatif: %w", err)
	}
	dec, err := fresh()
	if err == nil {
		err = m.memory.Load(s.View(), dec)
	}
	if err != nil {
		return fork{}, fmt.Errorf("whatif: %w", err)
	}
	return fork{s, dec}, nil
}

// World is what the future is simulated in, in addition to what the moment shows.
type World struct {
	// zero = starts and stops cost nothing, and a gang of half the width asked for goes half as fast
	Runtime sim.Runtime
	// of the nodes of the moment, in order; zero = none fails, and none that is down comes back
	Failures cluster.Failures
	Pools    []cluster.Pool // what rented nodes are like; nil = their GPUs, type and price alone
	// jobs to come, in order of submission, not before the moment; After counts from the moment's jobs on
	Arrivals []trace.Job

	costs *Costs // of starts and stops, in place of what Runtime says; nil = that
	known int    // jobs, of the moment and of Arrivals, that have a number in costs
	// with costs, jobs that run are as fast as they were measured, but for these, whose speed is a guess
	guessed map[sched.JobID]bool
}

// simulate returns a simulation that goes on from the moment. left is the work that each job of the moment has still to
// do; that of jobs that are done is not looked at.
func (m *Moment) simulate(w *World, left []time.Duration) (*sim.Driver, error) {
	v := m.View()
	t := &trace.Trace{Jobs: make([]trace.Job, len(v.Jobs), len(v.Jobs)+len(w.Arrivals))}
	for i := range v.Jobs {
		j := &v.Jobs[i]
		t.Jobs[i] = trace.Job{Spec: *asked(j), Duration: j.WorkNow(v.Now) + max(left[i], 0)}
	}
	t.Jobs = append(t.Jobs, w.Arrivals...)
	run := w.Runtime
	if run.EpochEnd == nil {
		run.EpochEnd = evenEpochs
	}
	w.costs.charge(&run, t, w.known)
	if w.costs != nil && run.Speed == nil && run.OnType == nil {
		measured(&run, v, t, w.guessed)
	}
	c := &cluster.Cluster{Types: v.Types, Failures: w.Failures, Pools: w.Pools}
	for i := range v.Nodes {
		c.Nodes = append(c.Nodes, v.Nodes[i].Spec)
	}
	d, err := sim.New(t, c, sim.Options{Runtime: run})
	if err != nil {
		return nil, fmt.Errorf("whatif: %w", err)
	}
	return d, nil
}

// evenEpochs returns the work done at the end of an epoch of a job: they are as long as one another.
func evenEpochs(j *trace.Job, n int) time.Duration {
	if j.Spec.Epochs <= 0 {
		return j.Duration + 1
	}
	return sched.ScaleDuration(j.Duration, float64(n)/float64(j.Spec.Epochs))
}

// bounded is a driver that ends at a horizon.
type bounded struct {
	sched.Driver
	until  sched.Time
	events int         // that it may still report
	enough func() bool // all is known; nil = never
	over   bool
}

// Next ends at the first instant beyond the horizon, after as many events as there may be, and when enough is known.
func (b *bounded) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	if b.enough != nil && b.enough() {
		return nil, io.EOF
	}
	events, err := b.Driver.Next(ctx, until)
	if errors.Is(err, sim.ErrTooLong) { // as of a job of which nothing is known, on fewer GPUs than it asked for
		b.over = true
		return nil, io.EOF
	}
	if err != nil || len(events) == 0 {
		return events, err
	}
	if b.events -= len(events); b.events < 0 || events[0].Time > b.until {
		b.over = true
		return nil, io.EOF
	}
	return events, nil
}

// errNoJob is the error about a job that the moment does not show.
var errNoJob = errors.New("whatif: no such job")

// GoOn lets the engine and a copy of the system go on from the moment under d, which hears the moment by Sync, until
// nothing can happen any more, d ends or ctx does. sinks hear every event. A panic there is an error: what may happen
// is no reason for the manager of jobs that run to end.
func (m *Moment) GoOn(ctx context.Context, d sched.Driver, sinks ...eventlog.Sink) (err error) {
	f, err := m.fork(nil)
	if err != nil {
		return err
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("whatif: a future that was simulated broke off: %v", cause)
		}
	}()
	return engine.Run(ctx, f.state, d, f.dec, engine.Options{Sinks: sinks})
}
