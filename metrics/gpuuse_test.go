package metrics_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// ruler measures jobs now and then, which it has the Recorder hear of, and adds up by itself what they use.
type ruler struct {
	*metrics.Recorder
	rng    *rand.Rand
	at     sched.Time
	rates  map[sched.JobID]float64 // as measured of the attempt
	drawn  map[sched.JobID]float64 // GPUs in use at present
	used   map[sched.JobID]float64 // GPU-seconds
	peaks  map[sched.JobID]float32
	shared int // looks at a GPU of several jobs
}

// Log has the Recorder hear of e, and perhaps of a measurement.
func (r *ruler) Log(v *sched.View, e *sched.Event) {
	for id, gpus := range r.drawn {
		r.used[id] += gpus * e.Time.Sub(r.at).Seconds()
	}
	r.at = e.Time
	r.Recorder.Log(v, e)
	if e.Kind == sched.AttemptEnded || e.Kind == sched.StartFailed {
		delete(r.rates, e.Job)
	}
	if n := len(v.Jobs); n > 0 {
		id := sched.JobID(r.rng.IntN(n))
		if v.Jobs[id].HoldsDevices() {
			m := sched.Event{Kind: sched.Measured, Time: e.Time, Node: sched.None, Job: id, Rate: r.rng.Float64(),
				MemGB: float32(r.rng.IntN(80))}
			r.Recorder.Log(v, &m)
			r.rates[id], r.peaks[id] = m.Rate, max(r.peaks[id], m.MemGB)
		}
	}
	r.draw(v)
}

// draw notes how much is in use from now on.
func (r *ruler) draw(v *sched.View) {
	clear(r.drawn)
	weights := make(map[sched.GPUID]float64)
	for j := range v.Jobs {
		if v.Jobs[j].HoldsDevices() {
			for _, g := range v.Jobs[j].GPUs {
				weights[g] += weightOf(v.Jobs[j].Spec)
			}
		}
	}
	for id, rate := range r.rates {
		for _, g := range v.Jobs[id].GPUs {
			part := weightOf(v.Jobs[id].Spec) / weights[g]
			if r.drawn[id] += rate * part; part < 1 {
				r.shared++
			}
		}
	}
}

func weightOf(s *sched.JobSpec) float64 {
	if s.Util == 0 {
		return 1
	}
	return float64(s.Util)
}

// Ensure that what jobs use of their GPUs, tenants of one their parts, is what plain bookkeeping adds up, on random
// histories; and that what they are charged for is what the meters of the nodes say.
func TestUsageOfTenants(t *testing.T) {
	shared := 0
	for seed := range uint64(120) {
		h := newHistory(seed)
		d, err := sim.New(&trace.Trace{Jobs: h.jobs}, &h.cluster, h.options)
		if err != nil {
			t.Fatal(err)
		}
		r := &ruler{Recorder: metrics.NewRecorder(0), rng: rand.New(rand.NewPCG(seed, 9)),
			rates: make(map[sched.JobID]float64), drawn: make(map[sched.JobID]float64),
			used: make(map[sched.JobID]float64), peaks: make(map[sched.JobID]float32)}
		ctx, stop := context.WithCancel(t.Context())
		o := engine.Options{Sinks: []eventlog.Sink{r, &limit{t, 20000, stop}}}
		if err := engine.Run(ctx, engine.NewState(eventlog.Header{Pools: h.pools, ShareLimit: 3}), d, h.decider(0),
			o); err != nil {
			t.Fatal(err)
		}
		stop()
		res, charged := r.Result("x"), 0.0
		for id, j := range r.All() {
			want := r.used[sched.JobID(id)]
			if math.Abs(float64(j.InUse)-want) > 1e-9*(1+want) || j.PeakGB != r.peaks[sched.JobID(id)] {
				t.Fatalf("seed %d: job %d: %v GPU-seconds in use, at most %v GB, want %v and %v", seed, id, j.InUse,
					j.PeakGB, want, r.peaks[sched.JobID(id)])
			}
			charged += float64(j.Energy)
		}
		if want := 3.6e6 * res.EnergyBusy; math.Abs(charged-want) > 1e-9*want {
			t.Fatalf("seed %d: jobs answer for %v J, the meters say %v", seed, charged, want)
		}
		shared += r.shared
	}
	if shared == 0 {
		t.Error("no GPU was shared")
	}
}
