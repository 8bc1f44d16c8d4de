package controller

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// figuresOf asks for figures as Prometheus does, and returns them by name and labels.
func figuresOf(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(m); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		for _, x := range f.GetMetric() {
			name := f.GetName()
			for _, l := range x.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = x.GetGauge().GetValue() + x.GetCounter().GetValue() + float64(x.GetHistogram().GetSampleCount())
		}
	}
	return got
}

// Ensure that figures are those of the state while someone decides, that sums go together, and that one who does not
// decide gives none.
func TestMetrics(t *testing.T) {
	r := newRig(t, "las", map[string]string{"min_run": "0", "preempt_limit": "0"}, 30, 5)
	for i := range r.trace.Jobs { // all at once, so that some have to give way
		r.trace.Jobs[i].Spec.Submit = sched.Time(i)
	}
	c := r.controller()
	m := c.o.Metrics
	if got := figuresOf(t, m); got["trainyard_deciding"] != 0 || len(got) != 9 {
		t.Errorf("before: %v", got)
	}
	live, err := c.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, looks := live.state.View(), 0
	look := func() {
		if looks++; looks%20 > 0 || len(v.Nodes) == 0 {
			return
		}
		got, jobs := figuresOf(t, m), 0
		for id := range v.Jobs {
			if v.Jobs[id].HoldsDevices() {
				jobs++
			}
		}
		if held := got["trainyard_jobs Starting"] + got["trainyard_jobs Running"] +
			got["trainyard_jobs Stopping"]; held != float64(jobs) {
			t.Fatalf("%v jobs hold GPUs, want %d: %v", held, jobs, got)
		}
		if all := got["trainyard_gpus busy"] + got["trainyard_gpus free"] +
			got["trainyard_gpus unusable"]; all != float64(len(v.GPUs)) || got["trainyard_deciding"] != 1 {
			t.Fatalf("%v GPUs, want %d: %v", all, len(v.GPUs), got)
		}
	}
	err = engine.Run(t.Context(), live.state, looking{r.driver(), look}, live.dec,
		engine.Options{Sinks: []eventlog.Sink{live.store, newMeter(m, v)}})
	if err != nil {
		t.Fatal(err)
	}
	got, preempted := figuresOf(t, m), 0
	for id := range v.Jobs {
		preempted += int(v.Jobs[id].Preemptions)
	}
	if preempted == 0 || got["trainyard_preemptions_total"] != float64(preempted) {
		t.Errorf("%v preemptions, want %d, more than none", got["trainyard_preemptions_total"], preempted)
	}
	if got["trainyard_attempts_ended_total finished"] != 30 || got["trainyard_gpus free"] != 16 ||
		got["trainyard_jobs Pending"] != 0 {
		t.Errorf("in the end: %v", got)
	}
}

// Ensure that pools that are gone, which have no names any more, have no figures, however many there are.
func TestMetricsOfPoolsThatAreGone(t *testing.T) {
	m := NewMetrics()
	v := &sched.View{Pools: []sched.Pool{{}, {Spec: sched.PoolSpec{Name: "spot"}, Nodes: 2}, {}}}
	if err := newMeter(m, v).EndBatch(); err != nil {
		t.Fatal(err)
	}
	got := figuresOf(t, m)
	if _, gone := got["trainyard_pool_nodes  rented"]; gone || got["trainyard_pool_nodes spot rented"] != 2 {
		t.Errorf("%v", got)
	}
}
