package whatif_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
	"github.com/trainyard/trainyard/whatif"
	"github.com/trainyard/trainyard/whatif/whatiftest"
)

// busy is a machine of eight GPUs with 200 jobs in its past and so many in its queue.
func busy(b *testing.B, queue int) (*whatif.Moment, *whatif.Work) {
	b.Helper()
	w, r := whatiftest.NewWorld(1), rand.New(rand.NewPCG(1, 1))
	w.Runtime, w.Sleep, w.Cluster.Pools, w.Header.Pools, w.Runtime = sim.Runtime{}, "", nil, nil, sim.Runtime{}
	w.Cluster.Failures.MTBF, w.Cluster.Nodes, w.Cluster.Types, w.Header.Types = 0, w.Cluster.Nodes[:1], []string{"a"},
		[]string{"a"}
	w.Cluster.Nodes[0].GPUs, w.Cluster.Nodes[0].Type = 8, 0
	w.Scores = whatiftest.ScoresOf(8, r)
	w.Trace.Jobs = nil
	var sizes []float64
	for range 200 + queue {
		j := trace.Job{Spec: sched.JobSpec{GPUs: sched.Rigid(1 << r.IntN(3))}, Duration: lognormal(r)}
		w.Trace.Jobs, sizes = append(w.Trace.Jobs, j), append(sizes, j.Duration.Seconds())
	}
	fresh, _, _ := w.System("tiresias-las")
	w.Header.ShareLimit = 1
	dec, err := fresh()
	if err != nil {
		b.Fatal(err)
	}
	var m *whatif.Moment
	c := &whatiftest.Cutter{W: w, Dec: dec, Fresh: fresh}
	done := whatiftest.SinkFunc(func(v *sched.View) {
		if over := 0; m == nil && c.At == 0 {
			for i := range v.Jobs {
				if v.Jobs[i].State == sched.Done {
					over++
				}
			}
			if over >= 200 {
				c.At = v.Now
			}
		}
	})
	d, err := sim.New(w.Trace, w.Cluster, sim.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err = engine.Run(b.Context(), engine.NewState(w.Header), d, dec,
		engine.Options{Sinks: []eventlog.Sink{done, c}}); err != nil {
		b.Fatal(err)
	}
	if m = c.Moment; m == nil {
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
	m, w := busy(b, 50)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Forecast(b.Context(), w, whatif.ForecastOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkForecastOfMany is one forecast of twenty draws of a long queue.
func BenchmarkForecastOfMany(b *testing.B) {
	for _, n := range []int{200, 2_000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			m, w := busy(b, n)
			for b.Loop() {
				if _, err := m.Forecast(b.Context(), w, whatif.ForecastOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRemedies is one search for what would let the last job start.
func BenchmarkRemedies(b *testing.B) {
	m, _ := busy(b, 50)
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
