package restart

import (
	"slices"
	"time"

	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// Costs learns from events what restarting a job of a model costs: the time from the order to start to when it is up,
// from there to the first step that it reports, less the work that it has done by then, and from the order to stop to
// its end. Each is the median of the last five.
//
// First starts count as well: they are all there is to learn from before anything was restarted. A job that reports no
// steps shows only how soon its processes are up, which says little of when they are at work: for that, other models
// stand in, or Default while none is known.
type Costs struct {
	sched.ByName

	Default time.Duration // what a restart costs while nothing is known

	models map[string]*cost // at most maxModels: others are part of all only
	all    cost
	jobs   arena.Pages[phase]
}

// maxModels bounds what is remembered, and newest is how many times make a median: enough to have an odd one not count.
// Ours.
const (
	maxModels = 1 << 10
	newest    = 5
)

// cost is the last times that each part took.
type cost struct{ up, step, stop times }

// times is at most newest, the oldest first.
type times []time.Duration

func (t *times) add(d time.Duration) {
	if len(*t) == newest {
		*t = append((*t)[:0], (*t)[1:]...)
	}
	*t = append(*t, max(d, 0))
}

// median returns the middle one, the longer of two; 0 of none.
func (t times) median() time.Duration {
	if len(t) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(t))[len(t)/2]
}

// phase is what an attempt does, since when, and the work done then.
type phase struct {
	doing doing
	since sched.Time
	work  time.Duration
}

type doing uint8

const (
	running  doing = iota // and nothing is awaited
	starting              // until it is up
	loading               // until its first step
	stopping              // until its end
	doings
)

// NewCosts returns a Costs that has seen nothing.
func NewCosts(def time.Duration) *Costs {
	return &Costs{Default: def, models: make(map[string]*cost)}
}

var (
	_ sched.Observer = (*Costs)(nil)
	_ sched.Memory   = (*Costs)(nil)
)

// Of returns what a restart of a job of model is expected to cost; "" is a model like any other.
func (c *Costs) Of(model string) time.Duration {
	of := c.models[model]
	if of == nil {
		of = &c.all
	}
	pick := func(own, all times) times {
		if len(own) > 0 {
			return own
		}
		return all
	}
	step := c.Default
	if t := pick(of.step, c.all.step); len(t) > 0 {
		step = t.median()
	}
	return pick(of.up, c.all.up).median() + step + pick(of.stop, c.all.stop).median()
}

// Observe learns from how attempts start and end.
func (c *Costs) Observe(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.Ordered:
		switch sched.ActionKind(e.Code) {
		case sched.Start:
			c.enter(e.Job, phase{doing: starting, since: e.Time})
		case sched.Stop:
			c.enter(e.Job, phase{doing: stopping, since: e.Time})
		}
	case sched.AttemptStarted:
		if p := c.phase(e.Job); p.doing == starting {
			c.learn(v, e.Job, func(x *cost) *times { return &x.up }, e.Happened().Sub(p.since))
			c.enter(e.Job, phase{loading, e.Happened(), e.Work})
		}
	case sched.Progressed:
		c.progressed(v, e)
	case sched.AttemptEnded, sched.StartFailed:
		p := c.phase(e.Job)
		if p.doing == stopping && e.Outcome == sched.Preempted {
			c.learn(v, e.Job, func(x *cost) *times { return &x.stop }, max(e.Happened().Sub(p.since), 0))
		}
		c.enter(e.Job, phase{})
	}
}

// progressed takes in the first steps of an attempt.
func (c *Costs) progressed(v *sched.View, e *sched.Event) {
	p := c.phase(e.Job)
	if p.doing != loading || !(e.Value > 0) && e.Work <= p.work || !(e.Rate > 0) {
		return
	}
	took, gained := e.Time.Sub(p.since), max(e.Work-p.work, 0)
	if worked := gained.Seconds() / e.Rate; worked < took.Seconds() {
		took -= sched.Seconds(worked)
	} else if worked > 0 {
		took = 0
	}
	c.learn(v, e.Job, func(x *cost) *times { return &x.step }, took)
	c.enter(e.Job, phase{})
}

// phase returns that of job j.
func (c *Costs) phase(j sched.JobID) phase {
	if p := c.jobs.At(int(j)); p != nil {
		return *p
	}
	return phase{}
}

// enter has job j be in a phase. Of those that just run nothing is kept.
func (c *Costs) enter(j sched.JobID, to phase) {
	was := c.phase(j)
	switch {
	case to.doing != running && was.doing == running:
		*c.jobs.Use(int(j)) = to
	case to.doing != running:
		*c.jobs.At(int(j)) = to
	case was.doing != running:
		c.jobs.Drop(int(j))
	}
}

// learn adds a time to a part of what is known of the model of job j, and of all.
func (c *Costs) learn(v *sched.View, j sched.JobID, part func(*cost) *times, d time.Duration) {
	part(&c.all).add(d)
	model := v.Jobs[j].Spec.Model
	of := c.models[model]
	if of == nil {
		if len(c.models) == maxModels {
			return
		}
		of = &cost{}
		c.models[model] = of
	}
	part(of).add(d)
}
