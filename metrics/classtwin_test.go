package metrics_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// classTwin notes everything, and finds the class of each GPU at each instant by looking at everything again.
type classTwin struct {
	moments []classMoment
	tries   []try
	jobs    []sched.Job // as of the event before
	first   sched.Time
	last    sched.Time // of the last event about a job that was not done
	arrived bool
}

// classMoment is what a plain look at the View says from at on.
type classMoment struct {
	at    sched.Time
	class []timeline.Class
	held  [][]sched.JobID
}

// try is an attempt as the log says it.
type try struct {
	job                            sched.JobID
	ordered, work, kept, stop, end sched.Time
}

func (c *classTwin) latest(id sched.JobID) *try {
	for i := len(c.tries) - 1; i >= 0; i-- {
		if c.tries[i].job == id {
			return &c.tries[i]
		}
	}
	return nil
}

// Log notes an event and what is so after it.
func (c *classTwin) Log(v *sched.View, e *sched.Event) {
	if e.Kind == sched.JobArrived && !c.arrived {
		c.arrived, c.first, c.last = true, e.Time, e.Time
	}
	if e.Kind == sched.JobArrived || e.Kind.Form().Life && e.Job >= 0 && c.jobs[e.Job].State != sched.Done {
		c.last = e.Time
	}
	if e.Kind.Form().Job != sched.NotNamed && e.Job >= 0 {
		c.noteTry(v, e)
	}
	m := classMoment{at: e.Time}
	for g := range v.GPUs {
		class, jobs := timeline.Class(0), []sched.JobID(nil)
		for id := range v.Jobs {
			if v.Jobs[id].HoldsDevices() && slices.Contains(v.Jobs[id].GPUs, sched.GPUID(g)) {
				jobs = append(jobs, sched.JobID(id))
			}
		}
		if len(jobs) == 0 {
			class = plainClass(v, sched.GPUID(g))
		}
		m.class, m.held = append(m.class, class), append(m.held, jobs)
	}
	c.moments = append(c.moments, m)
	c.jobs = slices.Clone(v.Jobs)
}

func (c *classTwin) noteTry(v *sched.View, e *sched.Event) {
	x := c.latest(e.Job)
	switch e.Kind {
	case sched.Ordered:
		switch sched.ActionKind(e.Code) {
		case sched.Start:
			c.tries = append(c.tries, try{e.Job, e.Time, sched.Never, sched.Never, sched.Never, sched.Never})
		case sched.Stop:
			x.stop = e.Time
		}
	case sched.AttemptStarted:
		if v.Jobs[e.Job].Attempt == sched.Running {
			x.work = e.WorkFrom
		}
	case sched.AttemptEnded, sched.StartFailed:
		c.noteEnd(v, e, x)
	case sched.Saved:
		if e.Code == sched.FromZero || e.Code == sched.StartedOver {
			c.noteZero(e.Job)
		}
	}
}

// noteZero takes back what was said to be kept by all attempts that have ended.
func (c *classTwin) noteZero(id sched.JobID) {
	for i := len(c.tries) - 1; i >= 0; i-- {
		if x := &c.tries[i]; x.job == id && x.end != sched.Never {
			x.kept = x.work
		}
	}
}

func (c *classTwin) noteEnd(v *sched.View, e *sched.Event, x *try) {
	was := &c.jobs[e.Job]
	x.end = e.Time
	x.stop = min(x.stop, x.end)
	x.work = min(x.work, x.stop)
	x.kept = x.stop
	if v.Jobs[e.Job].State == sched.Done || x.work >= x.stop {
		return
	}
	made := max(was.WorkNow(e.Time)-was.Loss().Base, 0)
	if was.Attempt == sched.Running {
		made = max(was.Work+sched.ScaleDuration(max(e.Time.Sub(was.WorkFrom), 0), was.Rate)-was.Loss().Base, 0)
	}
	if made == 0 {
		made = sched.ScaleDuration(x.stop.Sub(x.work), float64(len(was.GPUs))/float64(was.Unit()))
	}
	if kept := max(e.Work-was.Loss().Base, 0); kept < made {
		x.kept = x.work.Add(sched.ScaleDuration(x.stop.Sub(x.work), float64(kept)/float64(made)))
	}
}

// plainClass returns the class of a GPU that no attempt holds, by the words of the specification.
func plainClass(v *sched.View, g sched.GPUID) timeline.Class {
	gpu := v.GPUs[g]
	n := v.Nodes[gpu.Node]
	switch {
	case n.State == sched.NodeGone:
		return timeline.Classes
	case n.State == sched.NodeDown, gpu.State == sched.GPUMissing && n.State != sched.NodeAsleep:
		return timeline.Down
	case n.State == sched.NodeAsleep && n.Awaited && n.Ordered == sched.NodeUp:
		return timeline.Booting
	case n.State == sched.NodeAsleep:
		return timeline.Asleep
	case n.State == sched.NodeDraining, gpu.State == sched.GPUWithheld:
		return timeline.Drained
	case gpu.State != sched.GPUInUse:
		return timeline.Foreign
	case gpu.Quarantined || gpu.Rests != 0:
		return timeline.Quarantined
	case n.Target == sched.NodeAsleep:
		return timeline.Asleep
	case n.Target != sched.NodeUp:
		return timeline.Drained
	case gpu.Targets > 0:
		return timeline.Reserved
	}
	return plainIdle(v, n.Spec.Type)
}

// plainIdle looks at every waiting job and every node.
func plainIdle(v *sched.View, of sched.TypeID) timeline.Class {
	var free []int // by node
	all, size := 0, 0
	for i := range v.Nodes {
		n := &v.Nodes[i]
		idle := 0
		for g := n.First; g < n.First+sched.GPUID(n.Spec.GPUs); g++ {
			if n.Spec.Type == of && v.Usable(g) && v.GPUs[g].Holders == 0 && v.GPUs[g].Targets == 0 {
				idle++
			}
		}
		if n.Spec.Type == of {
			size = max(size, n.Spec.GPUs)
		}
		free, all = append(free, idle), all+idle
	}
	slices.Sort(free)
	slices.Reverse(free)
	class := timeline.Unwanted
	for i := range v.Jobs {
		j := &v.Jobs[i]
		if j.State != sched.Waiting || j.Cancel || j.Paused || len(j.Target) > 0 || !j.Spec.Types.Has(of) {
			continue
		}
		need, most := int(j.Spec.GPUs.Min), 0
		for _, k := range free[:min(len(free), (need+size-1)/size)] {
			most += k
		}
		switch {
		case need <= most:
			return timeline.Policy
		case need <= all:
			class = timeline.Apart
		case class == timeline.Unwanted:
			class = timeline.TooFew
		}
	}
	return class
}

// sums returns GPUs x time by class, between any two edges that there are.
func (c *classTwin) sums() (by [timeline.Classes]timeline.Area) {
	for i := range c.tries {
		x := &c.tries[i]
		x.stop = min(x.stop, x.end, c.last)
		x.work, x.kept = min(x.work, x.stop), min(x.kept, x.stop)
	}
	for i := range c.moments {
		m := &c.moments[i]
		until := c.last
		if i+1 < len(c.moments) {
			until = min(until, c.moments[i+1].at)
		}
		from := max(m.at, c.first)
		if until <= from || !c.arrived {
			continue
		}
		edges := []sched.Time{from, until}
		for k := range c.tries {
			for _, at := range []sched.Time{c.tries[k].work, c.tries[k].kept, c.tries[k].stop} {
				if from < at && at < until {
					edges = append(edges, at)
				}
			}
		}
		slices.Sort(edges)
		for k := 1; k < len(edges); k++ {
			c.addSpan(&by, m, edges[k-1], edges[k])
		}
	}
	return by
}

func (c *classTwin) addSpan(by *[timeline.Classes]timeline.Area, m *classMoment, from, to sched.Time) {
	for g, class := range m.class {
		if len(m.held[g]) > 0 {
			class = timeline.Classes
			for i := range c.tries {
				x := &c.tries[i]
				if from < x.ordered || from >= x.end || !slices.Contains(m.held[g], x.job) {
					continue
				}
				switch {
				case from >= x.stop:
					class = min(class, timeline.Stopping)
				case from < x.work:
					class = min(class, timeline.ComingUp)
				case from >= x.kept:
					class = min(class, timeline.Redone)
				default:
					class = timeline.Useful
				}
			}
		}
		if class < timeline.Classes {
			by[class] = by[class].Plus(timeline.AreaOf(1, to.Sub(from)))
		}
	}
}

// Ensure that the classes of GPUs are those that a plain look at everything finds, to the nanosecond, that they sum to
// GPUs x time, and that they agree with the Recorder, on random histories with failures, naps, sharing, renting, delays
// and commands of users.
func TestLossesAgainstTwin(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(250) {
		h := newHistory(seed)
		for i := range h.jobs {
			s := &h.jobs[i].Spec
			s.User, s.Group, s.Model = fmt.Sprint("u", i%3), fmt.Sprint("g", i%2), fmt.Sprint("m", i%5)
		}
		d, err := sim.New(&trace.Trace{Jobs: h.jobs}, &h.cluster, h.options)
		if err != nil {
			t.Fatal(err)
		}
		rec, line, twin := metrics.NewRecorder(0), new(timeline.Timeline), new(classTwin)
		ctx, stop := context.WithCancel(context.Background())
		o := engine.Options{Sinks: []eventlog.Sink{rec, line, twin, &limit{t, 20000, stop}}}
		err = engine.Run(ctx, engine.NewState(eventlog.Header{Pools: h.pools, ShareLimit: 3}), d,
			h.decider(9*int(seed%3/2)), o)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range compareClasses(t, seed, line.Losses(), twin) {
			seen[c.String()]++
		}
		agrees(t, seed, line, rec.Result("x"))
		usageSums(t, seed, line, rec, twin)
		if t.Failed() {
			return
		}
	}
	for c := range timeline.Classes {
		if seen[c.String()] < 5 && !slices.Contains(elsewhere, c) {
			t.Errorf("%d histories with GPUs in class %v: too few to say anything", seen[c.String()], c)
		}
	}
}

// elsewhere are the classes that random histories do not come to: packed jobs are given all that they fit on.
var elsewhere = []timeline.Class{timeline.Foreign, timeline.Quarantined, timeline.Apart, timeline.Policy}

// compareClasses returns in which classes GPUs were, and compares them with those of the twin.
func compareClasses(t *testing.T, what any, got *timeline.Losses, twin *classTwin) (seen []timeline.Class) {
	t.Helper()
	if got.From != twin.first || got.To != twin.last {
		t.Errorf("%v: from %v to %v, want %v to %v", what, got.From, got.To, twin.first, twin.last)
	}
	sum, want := timeline.Area{}, twin.sums()
	for c := range timeline.Classes {
		if got.By[c] != want[c] {
			t.Errorf("%v: %v %v, want %v", what, c, got.By[c], want[c])
		}
		sum = sum.Plus(want[c])
		if want[c] != (timeline.Area{}) {
			seen = append(seen, c)
		}
	}
	if got.All != sum {
		t.Errorf("%v: all %v, want %v", what, got.All, sum)
	}
	return seen
}

// agrees compares a timeline with the figures of a Recorder.
func agrees(t *testing.T, what any, line *timeline.Timeline, res metrics.Result) {
	t.Helper()
	l := line.Losses()
	held := l.By[timeline.Useful].Plus(l.By[timeline.Redone]).Plus(l.By[timeline.ComingUp])
	held = held.Plus(l.By[timeline.Stopping])
	if held != l.Held {
		t.Errorf("%v: attempts %v, held %v, want them equal", what, held, l.Held)
	}
	near := func(figure string, got, want float64) {
		t.Helper()
		if diff := got - want; diff > 1e-9*max(want, 1e-9) || diff < -1e-9*max(want, 1e-9) {
			t.Errorf("%v: %s %v, want %v", what, figure, got, want)
		}
	}
	near("held GPU-hours", l.Held.Hours(), res.GPUHours)
	users := timeline.Area{}
	for i := range l.Users {
		users = users.Plus(l.Users[i].Held())
	}
	if users != l.Held {
		t.Errorf("%v: users held %v, want %v", what, users, l.Held)
	}
	if res.GPUAllocated > 0 {
		usable := res.GPUHours / res.GPUAllocated
		near("GPU-hours at work", l.By[timeline.Useful].Plus(l.By[timeline.Redone]).Hours(), res.GPUBusy*usable)
	}
	for i := range line.Attempts {
		a := &line.Attempts[i]
		if a.Ended == sched.None || a.Ended < a.Ordered || a.Stopped != sched.None && a.Stopped > a.Ended {
			t.Errorf("%v: attempt %+v, want it to end, and after it was ordered", what, *a)
		}
	}
}

// Ensure the same of every system: on a trace whose jobs ask for all that a submitter may, on nodes that fail, and of
// those that choose widths or rent with the speeds of models.
func TestLossesOfSystems(t *testing.T) {
	const in = "../internal/freeze/testdata/input/"
	seen := map[timeline.Class]int{}
	for _, info := range system.Table() {
		inputs := []simulate.Inputs{{Trace: in + "mixed.csv", Cluster: in + "failing.yaml"}}
		request := simulate.Request{System: info.Name}
		switch {
		case info.Rents:
			request.Budget = 14
			inputs = []simulate.Inputs{{Trace: in + "elastic.csv", Cluster: in + "rented.yaml", Apps: in + "tables"}}
		case slices.Contains([]string{"pal", "pm-first"}, info.Name):
			inputs = []simulate.Inputs{{Trace: in + "mixed.csv", Cluster: "6x4", Scores: in + "scores24.csv"}}
		case slices.Contains([]string{"eaco", "fifo-packed", "gandiva"}, info.Name):
			inputs = append(inputs, simulate.Inputs{Trace: in + "mixed.csv", Cluster: in + "octets.yaml",
				Sharing: in + "interference.csv"})
		}
		for _, from := range inputs {
			request.From = from
			line, twin := new(timeline.Timeline), new(classTwin)
			request.Timeline, request.Sinks = line, []eventlog.Sink{twin}
			out, err := request.Run(context.Background())
			if err != nil {
				t.Fatalf("%s on %s: %v", info.Name, from.Cluster, err)
			}
			for _, c := range compareClasses(t, info.Name, line.Losses(), twin) {
				seen[c]++
			}
			agrees(t, info.Name, line, out.Result)
		}
	}
	for _, c := range []timeline.Class{timeline.Useful, timeline.Redone, timeline.ComingUp, timeline.TooFew,
		timeline.Apart, timeline.Policy, timeline.Down} {
		if seen[c] == 0 {
			t.Errorf("no run with GPUs in class %v, want some", c)
		}
	}
}
