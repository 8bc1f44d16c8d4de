package whatiftest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
	"github.com/trainyard/trainyard/whatif"
)

// Cutter takes a moment when so many batches are over, or with the first at a time.
type Cutter struct {
	W      *World
	v      *sched.View
	Dec    sched.Decider
	Fresh  whatif.System
	After  int
	At     sched.Time // 0 = after counts
	Moment *whatif.Moment
	err    error
}

// Log keeps the state, of which EndBatch takes the moment.
func (c *Cutter) Log(v *sched.View, _ *sched.Event) { c.v = v }

// BeginBatch does nothing: moments lie between batches.
func (c *Cutter) BeginBatch() {}

// EndBatch takes the moment if it has come.
func (c *Cutter) EndBatch() error {
	if c.After--; c.v != nil && c.After == 0 || c.v != nil && c.At > 0 && c.v.Now >= c.At && c.Moment == nil {
		c.Moment, c.err = whatif.Take(c.W.Header, c.v, c.Dec, c.Fresh)
	}
	return c.err
}

// Record runs w under the named system and returns its log, up to the given time.
func (w *World) Record(t testing.TB, name string, until sched.Time) string {
	t.Helper()
	fresh, limit, ok := w.System(name)
	if !ok {
		t.Fatal(name)
	}
	w.Header.ShareLimit, w.Header.System = max(limit, 1), name
	var b bytes.Buffer
	l := eventlog.NewWriter(&b, w.Header)
	dec, _ := fresh()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	end := SinkFunc(func(v *sched.View) {
		if v.Now >= until {
			stop()
		}
	})
	err := engine.Run(ctx, engine.NewState(w.Header), w.Driver(t), dec, engine.Options{Sinks: []eventlog.Sink{l, end}})
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// SinkFunc is a Sink that looks at the state after each event.
type SinkFunc func(v *sched.View)

// Log calls the function.
func (f SinkFunc) Log(v *sched.View, _ *sched.Event) { f(v) }

// Scene is a cluster of which a moment is taken when the last job has arrived.
type Scene struct {
	nodes  []sched.NodeSpec
	Types  []string
	jobs   []trace.Job
	System string
	Pools  []cluster.Pool
	Budget float64
	Stated bool // the system knows of the work of jobs what they say
}

// Node adds a node with so many GPUs of a type.
func (s *Scene) Node(gpus int, t sched.TypeID) *Scene {
	name := fmt.Sprint("n", len(s.nodes))
	s.nodes = append(s.nodes, sched.NodeSpec{Name: name, GPUs: gpus, Type: t, Pool: sched.None})
	return s
}

// Job adds a job that arrives a second after the one before and runs for so many seconds.
func (s *Scene) Job(seconds float64, spec sched.JobSpec) *Scene {
	return s.JobAt(float64(len(s.jobs)), seconds, spec)
}

// JobAt adds a job that arrives at a time in seconds, not before the one before, and runs for so many seconds.
func (s *Scene) JobAt(at, seconds float64, spec sched.JobSpec) *Scene {
	spec.Name, spec.Submit = fmt.Sprint("j", len(s.jobs)), sched.Time(sched.Seconds(at))
	s.jobs = append(s.jobs, trace.Job{Spec: spec, Duration: sched.Seconds(seconds)})
	return s
}

// Moment runs the scene and returns its world, and the moment when the last job has arrived.
func (s *Scene) Moment(t testing.TB) (*World, *whatif.Moment) {
	t.Helper()
	w := NewWorld(1)
	w.Runtime, w.Sleep, w.Trace = sim.Runtime{}, "", &trace.Trace{Jobs: s.jobs}
	w.Cluster = &cluster.Cluster{Name: "test", Types: s.Types, Nodes: s.nodes, Pools: s.Pools}
	w.Scores = ScoresOf(w.Cluster.MostGPUs(), rand.New(rand.NewPCG(1, 1)))
	w.stated, w.Budget = s.Stated, s.Budget
	fresh, limit, ok := w.System(s.System)
	if !ok {
		t.Fatal(s.System)
	}
	w.Header = eventlog.Header{ShareLimit: max(limit, 1), Types: s.Types, Pools: w.Cluster.PoolSpecs()}
	dec, _ := fresh()
	c := &Cutter{W: w, Fresh: fresh, Dec: dec, At: max(s.jobs[len(s.jobs)-1].Spec.Submit, 1)}
	o := engine.Options{Sinks: []eventlog.Sink{c}}
	if err := engine.Run(t.Context(), engine.NewState(w.Header), w.Driver(t), dec, o); err != nil {
		t.Fatal(err)
	}
	return w, c.Moment
}

// Log returns the log of the whole run.
func (s *Scene) Log(t testing.TB) string {
	t.Helper()
	w, _ := s.Moment(t)
	return w.Record(t, s.System, sched.Never)
}
