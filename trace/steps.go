package trace

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// StepTimes says how long an iteration, or step, of a job takes on the GPUs the job asks for: what a trace that counts
// iterations leaves open. The first row that fits a job counts.
type StepTimes struct{ rows []stepTime }

// stepTime is one row: an empty model and zeros fit every job.
type stepTime struct {
	model       string
	batch, gpus int
	step        time.Duration
}

// EveryStep returns step times that are the same for all jobs. It panics unless step > 0.
func EveryStep(step time.Duration) *StepTimes {
	if step <= 0 {
		panic(fmt.Sprintf("trace: step of %v, want > 0", step))
	}
	return &StepTimes{[]stepTime{{step: step}}}
}

// ReadSteps reads a table of step times: CSV under a header line with the columns model, batch_size, num_gpus and
// step_s, the seconds of a step. A model is written as Job.Spec.Model has it, without batch size.
func ReadSteps(r io.Reader, name string) (*StepTimes, error) {
	text, err := readText(r, name)
	if err != nil {
		return nil, err
	}
	l := &layout{columns: []column{{name: "model", optional: true}, {name: "batch_size", optional: true},
		{name: "num_gpus", optional: true}, {name: "step_s"}}}
	in := input{file: name, lines: lines{blocks: text}}
	header, _, err := in.next()
	if err != nil {
		return nil, err
	}
	names, _ := l.split(header, nil)
	if why := l.complain(names); why != "" {
		return nil, in.fail("header %q, want that of step times: %s", clip(header), why)
	}
	if name, ok := twice(names); ok {
		return nil, in.fail("column %q twice, want it once", name)
	}
	s := &StepTimes{}
	for {
		line, ok, err := in.next()
		if err != nil || !ok {
			return s, err
		}
		if line == "" {
			continue
		}
		row, wrong := readStep(names, line)
		if wrong != "" {
			return nil, in.fail("%s", wrong)
		}
		s.rows = append(s.rows, row)
	}
}

// readStep reads one row under a header of names.
func readStep(names []string, line string) (t stepTime, wrong string) {
	fields, ok := split(line, nil)
	if !ok || len(fields) != len(names) {
		return t, fmt.Sprintf("row %q, want %d fields", clip(line), len(names))
	}
	for i, name := range names {
		s, ok := fields[i], true
		switch {
		case name == "step_s":
			t.step, ok = parseTime(s, time.Second)
			ok = ok && t.step > 0
		case s == "":
		case name == "model":
			t.model = s
		case name == "batch_size":
			t.batch, ok = parseCount(s, math.MaxInt32)
		default:
			t.gpus, ok = parseCount(s, MaxGPUs)
		}
		if !ok {
			return t, fmt.Sprintf("%s %q, want a number above 0", name, clip(s))
		}
	}
	return t, ""
}

// of returns how long a step of j takes; ok is false where that is not known.
func (s *StepTimes) of(j *Job) (step time.Duration, ok bool) {
	if s == nil {
		return 0, false
	}
	for _, r := range s.rows {
		if (r.model == "" || r.model == j.Spec.Model) && (r.batch == 0 || r.batch == int(j.Spec.Batch.Max)) &&
			(r.gpus == 0 || r.gpus == int(j.Spec.GPUs.Want)) {
			return r.step, true
		}
	}
	return 0, false
}

// finishSteps turns the iterations of the row that made j into its duration. It returns what is wrong, or "".
func finishSteps(r *row, j *Job) (wrong string) {
	step, ok := r.steps.of(j)
	switch {
	case ok:
	case r.roughly:
		r.odd("have no duration: the file counts iterations, and how long one takes is not known")
		return ""
	case r.steps == nil:
		return "the file counts iterations, not time: want step times (trace convert --steps)"
	default:
		return fmt.Sprintf("model %q, batch size %d, %d GPUs: no step time fits, want one", clip(j.Spec.Model),
			j.Spec.Batch.Max, j.Spec.GPUs.Want)
	}
	sec := r.said.iterations * step.Seconds()
	if sec > MaxTime.Seconds() {
		return fmt.Sprintf("%s iterations of %v, want at most 100 years in all", strconv.FormatFloat(r.said.iterations,
			'g', -1, 64), step)
	}
	j.Duration = sched.Seconds(sec)
	return ""
}

// synergyLayout is a table of jobs made for the deployment of Synergy (msr-fiddle/synergy, OSDI'22). It counts
// iterations.
var synergyLayout = layout{
	name: "synergy",
	line: "job table of Synergy's deployment; counts iterations",
	zone: "seconds from the start of the workload; synthetic, no zone",
	columns: []column{
		{name: "job_id", means: jobID},
		{name: "model", means: model},
		{name: "arrival_s", means: submit},
		{name: "iterations", means: iterations},
		{name: "num_gpus", means: gpus},
	},
	finish: finishSteps,
}

// bloxLayout is the other job table of Blox and PAL (hal-uw/blox-pal), in the style of Shockwave. It counts iterations.
var bloxLayout = layout{
	name: "blox",
	line: "job table of Blox in the style of Shockwave; counts iterations",
	zone: "seconds from the start of the workload; synthetic, no zone",
	columns: []column{
		{name: "name", means: jobID},
		{name: "model_name", means: model},
		{name: "time", means: submit},
		{name: "num_iters", means: iterations},
		{name: "num_replicas", means: gpus},
	},
	finish: finishSteps,
}
