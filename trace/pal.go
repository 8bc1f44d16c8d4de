package trace

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// palLayout is the job table of PAL's artifact and of Blox (hal-uw/blox-pal), the Sia-Philly workloads. Its column
// duration counts iterations: the true run time is that many times the nominal time of an iteration of the model,
// whatever the GPUs. The class of a job is the published one of its model.
//
// Source: released code of PAL, tag artifact-v1.4.
var palLayout = layout{
	name: "pal",
	line: "job table of PAL and Blox; duration counts iterations, so that only six models are known",
	zone: "counted from the start of the workload; synthetic, no zone",
	columns: []column{
		{name: "job_id", means: jobID},
		{name: "num_gpus", means: gpus},
		{name: "submit_time", means: submit},
		{name: "duration", means: iterations},
		{name: "model", means: model},
		{name: "batch_size", means: batch, optional: true},
	},
	finish: finishPAL,
}

// palIteration is how long an iteration takes, in seconds, by model.
//
// Source: released code of PAL, as given to its simulator.
var palIteration = []struct {
	model string
	sec   float64
}{
	{"BERT", 0.179},
	{"DCGAN", 0.0469266931},
	{"GPT2", 3.5714},
	{"PointNet", 0.28125},
	{"resnet50", 0.17540429367763434},
	{"vgg19", 0.300610341},
}

// maxIterations bounds the iterations of a job; 100 years are fewer.
const maxIterations = 1e12

const wantIterations = "want iterations: a number from 0 to 1e12"

// parseIterations reads a number of iterations, which the published files write as 1481.0.
func parseIterations(s string) (n float64, ok bool) {
	if s == "" || strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, false // neither NaN, Inf nor hexadecimal digits
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && n >= 0 && n <= maxIterations && !math.Signbit(n)
}

// finishPAL turns the iterations of the row that made j into seconds, by Options.Steps if it fits. It returns what is
// wrong, or "".
func finishPAL(r *row, j *Job) (wrong string) {
	if _, ok := r.steps.of(j); ok {
		j.Spec.Class, _ = variability.Published(j.Spec.Model)
		return finishSteps(r, j)
	}
	var names []string
	for _, it := range palIteration {
		if it.model == j.Spec.Model {
			sec := r.said.iterations * it.sec
			if sec > MaxTime.Seconds() {
				return fmt.Sprintf("duration of %v iterations of %v s, want at most 100 years in all",
					r.said.iterations, it.sec)
			}
			j.Duration = sched.Seconds(sec)
			j.Spec.Class, _ = variability.Published(j.Spec.Model)
			return ""
		}
		names = append(names, it.model)
	}
	return fmt.Sprintf("model %q%s, want one of %s: duration counts iterations, and of these alone it is known how "+
		"long one takes",
		clip(j.Spec.Model), suggest.Hint(j.Spec.Model, names), strings.Join(names, ", "))
}
