package experiment

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// scenario is what befalls the cluster, once a day.
type scenario struct {
	name  string
	gpus  int           // disturbed together: 1, or those of a node
	ramp  time.Duration // until the worst is reached, in rampSteps steps; 0 = at once
	last  time.Duration // in all, at most 12 h
	worst float64
}

const rampSteps = 24

// scenarios are those of docs/papers/pal.md, fixed before anything was measured.
var scenarios = []scenario{
	{"one GPU 2.8x for 2 h", 1, 0, 2 * time.Hour, 2.8},
	{"one node 1.5x for 6 h", stragglerNode, 0, 6 * time.Hour, 1.5},
	{"one GPU drifts to 1.15x", 1, 4 * time.Hour, 12 * time.Hour, 1.15},
}

// fault is one disturbance of some GPUs: its changes, the last of which ends it.
type fault []sim.Change

func (f fault) begin() sched.Time { return f[0].At }

func (f fault) end() sched.Time { return f[len(f)-1].At }

// spells returns what happens to each of its GPUs, in order of time.
func (f fault) spells() []variability.Spell {
	var list []variability.Spell
	for i, c := range f[:len(f)-1] {
		for _, g := range c.GPUs {
			list = append(list, variability.Spell{GPU: int(g), From: c.At, To: f[i+1].At, Factor: c.Factor})
		}
	}
	return list
}

// draw returns a fault for each of so many days: it starts in the first half of the day and ends on it.
func (s *scenario) draw(seed uint64, days int) []fault {
	r := rand.New(rand.NewPCG(seed, 21))
	const day = sched.Time(24 * time.Hour)
	var faults []fault
	for d := range days {
		begin := sched.Time(d)*day + sched.Time(r.Int64N(int64(day/2)))
		first := r.IntN(stragglerGPUs/s.gpus) * s.gpus
		gpus := make([]sched.GPUID, s.gpus)
		for i := range gpus {
			gpus[i] = sched.GPUID(first + i)
		}
		f := fault{{At: begin, GPUs: gpus, Factor: s.worst}}
		if s.ramp > 0 {
			f = nil
			for i := range rampSteps {
				f = append(f, sim.Change{At: begin.Add(s.ramp / rampSteps * time.Duration(i)), GPUs: gpus,
					Factor: 1 + (s.worst-1)*float64(i+1)/rampSteps})
			}
		}
		faults = append(faults, append(f, sim.Change{At: begin.Add(s.last), GPUs: gpus, Factor: 1}))
	}
	return faults
}

// lost returns the share of a time from..to, in seconds, in which a gang that f slows down does nothing.
func (f fault) lost(from, to sched.Time) float64 {
	sum := 0.0
	for i, c := range f[:len(f)-1] {
		if d := min(to, f[i+1].At) - max(from, c.At); d > 0 {
			sum += time.Duration(d).Seconds() * (1 - 1/c.Factor)
		}
	}
	return sum
}

// toll is a Sink that measures what slow GPUs cost and when a system knew of them.
type toll struct {
	faults []fault
	// suspects says which GPUs the system takes to be slow, and revision rises when that changes; nil = it never does.
	suspects func(g sched.GPUID) bool
	revision func() uint64

	lost        float64      // GPU-seconds that attempts lost to slow GPUs
	from        []sched.Time // by job: since when its attempt works
	met         []bool       // by fault: a job worked on it
	seen        []sched.Time // by fault: when it was known; 0 = it was not
	next        int          // first fault that is not over
	last        uint64       // revision looked at last
	slow        []bool       // by GPU: taken to be slow
	said        int          // how often a GPU was taken to be slow that was not before
	quarantines int
	reports     int
}

// Log folds one event, before the system hears of it.
func (t *toll) Log(v *sched.View, e *sched.Event) {
	if t.revision != nil && t.revision() != t.last {
		t.last = t.revision()
		t.look(v, e.Time)
	}
	for t.next < len(t.faults) && t.faults[t.next].end() <= e.Time {
		t.next++
	}
	switch e.Kind {
	case sched.AttemptStarted:
		for int(e.Job) >= len(t.from) {
			t.from = append(t.from, 0)
		}
		t.from[e.Job] = max(e.Time, e.WorkFrom)
	case sched.Progressed:
		t.reports++
		t.charge(v, e)
	case sched.Moved:
		if len(e.GPUs) > 0 && e.Code == 1 {
			t.quarantines++
		}
	}
}

// charge counts the time since the last report of a job. What an attempt did after its last report is not counted, for
// all rows alike.
func (t *toll) charge(v *sched.View, e *sched.Event) {
	gpus := v.Jobs[e.Job].GPUs
	for i := max(0, t.next-1); i < len(t.faults) && t.faults[i].begin() < e.Time; i++ {
		f := t.faults[i]
		if f.end() <= t.from[e.Job] || !slices.ContainsFunc(gpus,
			func(g sched.GPUID) bool { return slices.Contains(f[0].GPUs, g) }) {
			continue
		}
		t.met[i] = true
		t.lost += float64(len(gpus)) * f.lost(t.from[e.Job], e.Time)
	}
	t.from[e.Job] = e.Time
}

// look finds out which GPUs are taken to be slow now.
func (t *toll) look(v *sched.View, now sched.Time) {
	for len(t.slow) < len(v.GPUs) {
		t.slow = append(t.slow, false)
	}
	for g := range t.slow {
		is := t.suspects(sched.GPUID(g))
		if is && !t.slow[g] {
			t.said++
		}
		t.slow[g] = is
	}
	if t.next < len(t.faults) && t.seen[t.next] == 0 && t.faults[t.next].begin() < now &&
		slices.ContainsFunc(t.faults[t.next][0].GPUs, func(g sched.GPUID) bool { return t.slow[g] }) {
		t.seen[t.next] = now
	}
}
