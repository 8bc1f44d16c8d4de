package simulate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// oracle returns what is true of how fast the jobs of t go; nil if no application is known.
func (s *Request) oracle(t *trace.Trace) *speedup.Oracle {
	if len(s.Apps) == 0 {
		return nil
	}
	widest := 1
	for i := range t.Jobs {
		widest = max(widest, int(t.Jobs[i].Spec.GPUs.Max))
	}
	return speedup.NewOracle(s.Apps, s.perNode(), min(widest, s.Cluster.MostGPUs()))
}

// perNode returns the GPUs of the largest node that is owned or may be rented.
func (s *Request) perNode() int {
	most := 1
	for i := range s.Cluster.Nodes {
		most = max(most, s.Cluster.Nodes[i].GPUs)
	}
	for i := range s.Cluster.Pools {
		most = max(most, s.Cluster.Pools[i].GPUs)
	}
	return most
}

// Measured returns t with the durations that follow from its applications in a cluster, where it gives none; t itself
// otherwise. The error names the first job that cannot be run.
func Measured(t *trace.Trace, c *cluster.Cluster, apps map[string]speedup.App) (*trace.Trace, error) {
	if !t.Profiled {
		return t, nil
	}
	s := Request{Trace: t, Cluster: c, Apps: apps}
	m := *t
	m.Jobs = slices.Clone(t.Jobs)
	return &m, measure(&m, s.oracle(&m))
}

// measure gives the jobs of t, which are s's own copy, the durations that follow from their applications.
func measure(t *trace.Trace, o *speedup.Oracle) error {
	if !t.Profiled {
		return nil
	}
	for i := range t.Jobs {
		j := &t.Jobs[i]
		var m *speedup.Meter
		var err error
		if o != nil {
			m, err = o.Meter(&j.Spec)
		}
		switch {
		case err != nil:
			return fmt.Errorf("trace: %s: job %s: %w", t.Path, j.Spec.Name, err)
		case m == nil:
			return fmt.Errorf("trace: %s: how long job %s takes follows from the profile of application %q, want "+
				"--profiles with one",
				t.Path, j.Spec.Name, j.Spec.Model)
		}
		j.Duration = m.Duration()
	}
	return nil
}

// goBy has jobs of known applications go as fast as those do. Epochs are the phases of the application; a job without
// one has as many of equal work as its submitter said.
func goBy(o *speedup.Oracle, r *sim.Runtime) {
	if o != nil {
		r.Speed = func(j *trace.Job, c sched.Config, placement []int,
			done time.Duration) (rate float64, until time.Duration) {
			m, err := o.Meter(&j.Spec)
			if m == nil || err != nil {
				return 0, -1
			}
			return m.RatePlaced(done, placement, speedup.Way{Batch: int(c.Batch), Accum: int(c.Accum)})
		}
	}
	r.EpochEnd = func(j *trace.Job, epoch int) time.Duration {
		var m *speedup.Meter
		if o != nil {
			m, _ = o.Meter(&j.Spec)
		}
		switch {
		case m != nil && m.Phases() > 1 && epoch <= m.Phases():
			return m.End(epoch - 1)
		case m != nil && m.Phases() > 1 || epoch > int(j.Spec.Epochs):
			return math.MaxInt64
		}
		return time.Duration(float64(j.Duration) * float64(epoch) / float64(j.Spec.Epochs))
	}
}

// byType has jobs of known applications go as fast as those do on GPUs of the type. Where a batch is too large for the
// memory of a type, it is made of more, smaller ones, and where none is possible it is the best there.
func (s *Request) byType(o *speedup.Oracle, r *sim.Runtime) {
	if o == nil || len(s.Recorded.Apps) == 0 {
		return
	}
	type key struct {
		on sched.TypeID
		of *speedup.Meter
	}
	meters := make(map[key]*speedup.Meter)
	r.OnType = func(j *trace.Job, t sched.TypeID, c sched.Config, placement []int,
		done time.Duration) (rate float64, until time.Duration) {
		m, err := o.Meter(&j.Spec)
		if m == nil || err != nil {
			return 0, -1
		}
		if app := s.Recorded.Apps[s.Cluster.Types[t]][j.Spec.Model]; app != nil {
			at := key{t, m}
			if meters[at] == nil {
				meters[at] = m.With(app)
			}
			m = meters[at]
		}
		for _, w := range []speedup.Way{{Batch: int(c.Batch), Accum: int(c.Accum)}, {Batch: int(c.Batch)}, {}} {
			if rate, until = m.RatePlaced(done, placement, w); rate > 0 {
				return rate, until
			}
		}
		return m.RatePlaced(done, placement, m.Unbound(done, placement))
	}
}

// mixOf returns what jobs of known applications t holds: each application's jobs over the time of the last arrival.
// Where the trace says how long jobs take, their mean is that.
func mixOf(t *trace.Trace, o *speedup.Oracle) []speedup.Class {
	var mix []speedup.Class
	var times []float64 // by class: how often its jobs do what the application says is to be done
	for i := range t.Jobs {
		j := &t.Jobs[i]
		at := slices.IndexFunc(mix, func(c speedup.Class) bool { return c.Model == j.Spec.Model })
		if at < 0 {
			c := o.Whole(&j.Spec)
			if c == nil {
				continue
			}
			at, mix, times = len(mix), append(mix, speedup.Class{Model: j.Spec.Model, Chain: c}), append(times, 0)
		}
		mix[at].Rate++
		if m, err := o.Meter(&j.Spec); m != nil && err == nil {
			times[at] += j.Duration.Seconds() / m.Duration().Seconds()
		}
	}
	span := 1.0
	if n := len(t.Jobs); n > 0 {
		span = max(span, t.Jobs[n-1].Spec.Submit.Seconds())
	}
	for i := range mix {
		if n := times[i] / mix[i].Rate; n > 0 && !t.Profiled {
			mix[i].Chain = slices.Clone(mix[i].Chain)
			for e := range mix[i].Chain {
				mix[i].Chain[e].Size *= n
			}
		}
		mix[i].Rate /= span
	}
	return mix
}
