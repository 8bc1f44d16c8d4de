package baseline_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/system/baseline"
	"github.com/trainyard/trainyard/trace"
)

// row is a job: submit, GPUs, duration; times in seconds.
type row [3]int

// starts plays jobs on a cluster and returns their first starts in seconds, -1 for never.
func starts(t *testing.T, spec string, rows []row, stages func(work sched.Remainer) pipeline.Stages) (list []int) {
	t.Helper()
	tr := &trace.Trace{}
	for _, r := range rows {
		tr.Jobs = append(tr.Jobs, trace.Job{Spec: sched.JobSpec{Submit: sched.Time(r[0]) * sched.Time(time.Second),
			GPUs: sched.Rigid(r[1])},
			Duration: time.Duration(r[2]) * time.Second})
	}
	c, err := cluster.Load(spec)
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.New(tr, c, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec := metrics.NewRecorder(len(rows))
	o := engine.Options{Sinks: []eventlog.Sink{rec}}
	if err := engine.Run(context.Background(), engine.NewState(eventlog.Header{}), d,
		pipeline.New(stages(tr.Oracle())), o); err != nil {
		t.Fatal(err)
	}
	for i := range rec.Jobs {
		at := -1
		if s := rec.Jobs[i].Start; s >= 0 {
			at = int(s / sched.Time(time.Second))
		}
		list = append(list, at)
	}
	return list
}

// Ensure that each baseline starts jobs as its definition says, on one node of four GPUs. Job 0 holds three GPUs until
// 10; job 1 wants all four; job 2 is short and narrow; job 3 is narrow and would delay job 1; job 4 is shorter than
// all.
func TestStarts(t *testing.T) {
	p := place.Count{}
	rows := []row{{0, 3, 10}, {1, 4, 5}, {2, 1, 3}, {3, 1, 20}, {4, 1, 2}}
	for _, c := range []struct {
		name   string
		stages func(sched.Remainer) pipeline.Stages
		want   []int
	}{
		// Job 1 blocks; then the others run side by side.
		{"fifo", func(sched.Remainer) pipeline.Stages { return baseline.FIFO(p) }, []int{0, 10, 15, 15, 15}},
		// Job 1 is passed over until 25, when job 3 ends.
		{"fifo-skip", func(sched.Remainer) pipeline.Stages { return baseline.FIFOSkip(p) }, []int{0, 25, 2, 5, 10}},
		// Job 1 has a reservation at 10: jobs 2 and 4 end before, job 3 would not.
		{"fifo-easy", func(w sched.Remainer) pipeline.Stages { return baseline.FIFOEasy(p, baseline.Known{Work: w}) },
			[]int{0, 10, 2, 15, 5}},
		// Job 1 does not fit at 1 and blocks jobs longer than it; shorter ones pass.
		{"sjf", func(w sched.Remainer) pipeline.Stages { return baseline.SJF(p, baseline.Known{Work: w}) },
			[]int{0, 10, 2, 15, 5}},
		// Job 1 preempts job 0 at 1; job 2, shorter than what remains of job 1, takes its place at 2, and job 0 three
		// more GPUs. At 4 job 4 preempts job 0, which leaves room for job 3.
		{"srtf", func(w sched.Remainer) pipeline.Stages { return baseline.SRTF(p, baseline.Known{Work: w}) },
			[]int{0, 1, 2, 4, 4}},
		// Job 1 has 20 GPU-seconds left, job 0 has 27; job 2 has 3, job 3 has 20.
		{"srsf", func(w sched.Remainer) pipeline.Stages { return baseline.SRSF(p, baseline.Known{Work: w}) },
			[]int{0, 1, 2, 3, 4}},
		{"fewest-gpus", func(sched.Remainer) pipeline.Stages { return baseline.Preempting(order.FewestGPUs{})(p) },
			[]int{0, 23, 2, 3, 4}},
	} {
		if got := starts(t, "1x4", rows, c.stages); !slices.Equal(got, c.want) {
			t.Errorf("%s: starts %d, want %d", c.name, got, c.want)
		}
	}
}

// Ensure that a job wider than the cluster never starts and holds up no other, under strict order too.
func TestTooWideHoldsUpNobody(t *testing.T) {
	for name, s := range map[string]pipeline.Stages{"fifo": baseline.FIFO(place.Count{}),
		"fifo-skip": baseline.FIFOSkip(place.Count{})} {
		if got := starts(t, "1x4", []row{{0, 5, 1}, {1, 4, 1}},
			func(sched.Remainer) pipeline.Stages { return s }); !slices.Equal(got, []int{-1, 1}) {
			t.Errorf("%s: starts %d, want -1, 1", name, got)
		}
	}
}
