package whatif_test

import (
	"math/rand/v2"
	"testing"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager/whatif"
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// busy is a machine of eight GPUs with 200 jobs in its past and 50 in its queue.
func busy(b *testing.B) (*whatif.Moment, *whatif.Work) {
	b.Helper()
	w, r := newWorld(1), rand.New(rand.NewPCG(1, 1))
	w.runtime, w.sleep, w.cluster.Pools, w.header.Pools, w.runtime = sim.Runtime{}, "", nil, nil, sim.Runtime{}
	w.cluster.Failures.MTBF, w.cluster.Nodes, w.cluster.Types, w.header.Types = 0, w.cluster.Nodes[:1], []string{"a"}, []string{"a"}
	w.cluster.Nodes[0].GPUs, w.cluster.Nodes[0].Type = 8, 0
	w.scores = scoresOf(8, r)
	w.trace.Jobs = nil
	var sizes []float64
	for range 250 {
		j := trace.Job{Spec: sched.JobSpec{GPUs: sched.Rigid(1 << r.IntN(3))}, Duration: lognormal(r)}
		w.trace.Jobs, sizes = append(w.trace.Jobs, j), append(sizes, j.Duration.Seconds())
	}
	fresh, _, _ := w.system("tiresias-las")
	w.header.ShareLimit = 1
	dec, err := fresh()
	if err != nil {
		b.Fatal(err)
	}
	var m *whatif.Moment
	c := &cutter{w: w, dec: dec, fresh: fresh}
	done := sinkFunc(func(v *sched.View) {
		if over := 0; m == nil && c.at == 0 {
			for i := range v.Jobs {
				if v.Jobs[i].State == sched.Done {
					over++
				}
			}
			if over >= 200 {
				c.at = v.Now
			}
		}
	})
	d, err := sim.New(w.trace, w.cluster, sim.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err = engine.Run(b.Context(), engine.NewState(w.header), d, dec, engine.Options{Sinks: []eventlog.Sink{done, c}}); err != nil {
		b.Fatal(err)
	}
	if m = c.moment; m == nil {
		b.Fatal("never cut")
	}
	all, err := dist.NewEmpirical(sizes)
	if err != nil {
		b.Fatal(err)
	}
	return m, &whatif.Work{All: all}
}

// BenchmarkForecast is one forecast of twenty draws.
func BenchmarkForecast(b *testing.B) {
	m, w := busy(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Forecast(b.Context(), w, whatif.ForecastOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRemedies is one search for what would let the last job start.
func BenchmarkRemedies(b *testing.B) {
	m, _ := busy(b)
	last := sched.JobID(len(m.View().Jobs) - 1)
	for m.View().Jobs[last].State != sched.Waiting {
		last--
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Remedies(b.Context(), last, whatif.RemedyOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
