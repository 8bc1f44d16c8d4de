package simulate

import (
	"math"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// rated is an application of one phase, which runs at batch sizes up to a largest one.
type rated struct {
	perGPU float64
	most   int
}

func (rated) Sizes() []float64 { return []float64{1000} }

func (a rated) Speed(_ int, w speedup.Way) float64 {
	if w.Batch > a.most {
		return 0
	}
	return a.perGPU * float64(w.GPUs)
}

func (a rated) Best(_, gpus, _ int, _ sched.BatchRange) (speedup.Way, float64) {
	return speedup.Way{GPUs: gpus, Nodes: 1, Batch: min(8, a.most)}, a.perGPU * float64(gpus)
}

// Ensure that a job takes as long as its application does on the type of GPU that it gets, in work of the type that is
// known, also where that holds no batch as large.
func TestSpeedsByType(t *testing.T) {
	known := map[string]speedup.App{"m": rated{10, 8}}
	for on, want := range map[string]float64{"1x2:a": 50, "1x2:b": 25, "1x2:c": 100} {
		c, err := cluster.Load(on)
		if err != nil {
			t.Fatal(err)
		}
		seen := Recorded{Apps: map[string]map[string]speedup.App{"b": {"m": rated{20, 8}}, "c": {"m": rated{5, 4}}}}
		s := Request{Cluster: c, System: "fifo", Apps: known, Recorded: seen,
			Trace: &trace.Trace{Profiled: true, Jobs: []trace.Job{{Spec: sched.JobSpec{Name: "j", Model: "m",
				GPUs: sched.Rigid(2), Batch: sched.BatchRange{Min: 8, Max: 8}}}}}}
		out, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := out.PerJob[0].JCT(); math.Abs(got.Seconds()-want) > time.Microsecond.Seconds() {
			t.Errorf("on %s it takes %v, want %v s", on, got, want)
		}
	}
}
