package trace

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// testbedWidths is how many jobs of the testbed workload have which width: 480 in all.
var testbedWidths = []struct{ gpus, jobs int }{{1, 240}, {2, 40}, {4, 80}, {8, 90}, {16, 25}, {32, 5}}

// testbedModels are the ten image models of the Tiresias job tables, in their order there.
var testbedModels = []string{"vgg19", "vgg16", "vgg11", "alexnet", "resnet152", "resnet101", "resnet50", "inception4",
	"inception3", "googlenet"}

// Testbed makes a workload like that of the testbed in the Tiresias paper (Gu et al., NSDI'19), its own 480 jobs are
// not public: 240 jobs of 1 GPU, 40 of 2, 80 of 4, 90 of 8, 25 of 16 and 5 of 32 in random order; durations bounded
// Pareto with shape 0.6 on 120 to 7200 s; Poisson arrivals with a mean gap of 30 s from time 0 on; ten models in turn,
// 48 jobs each. All times are whole seconds. It offers 60 GPUs about twice the work they can do.
func Testbed(seed uint64) *Trace {
	var widths []int
	for _, w := range testbedWidths {
		widths = append(widths, slices.Repeat([]int{w.gpus}, w.jobs)...)
	}
	r := stream(seed, 3)
	r.Shuffle(len(widths), func(i, k int) { widths[i], widths[k] = widths[k], widths[i] })
	law := Pareto{Shape: 0.6, Min: 120, Max: 7200}
	t := &Trace{Format: "generated", Zone: "synthetic, no zone", Jobs: make([]Job, len(widths))}
	now := 0.0
	for i := range t.Jobs {
		t.Jobs[i].Spec = sched.JobSpec{Name: strconv.Itoa(i), Model: testbedModels[i%len(testbedModels)],
			Submit: sched.Time(roundTo(now, time.Second)), GPUs: sched.Rigid(widths[i])}
		t.Jobs[i].Duration = roundTo(law.Draw(r), time.Second)
		now += math.Round(30 * r.ExpFloat64())
	}
	return t
}
