package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// planTrace are the flags of plan about a trace, as given.
type planTrace struct {
	profiles string
	window   string
	restart  string
	widest   string
	perNode  int
}

// given reports whether a flag is there that needs profiles.
func (f *planTrace) given() bool {
	return f.window != "" || f.restart != "" || f.widest != "" || f.perNode != 0
}

// nodeGPUs returns the GPUs of a node.
func (f *planTrace) nodeGPUs() int {
	if f.perNode == 0 {
		return planPerNode
	}
	return f.perNode
}

// Defaults of plan for a trace. 62 s is what simulate charges; 4 GPUs per node are those of the published profiles.
const (
	planRestart = 62
	planPerNode = 4
)

// readTraceWorkload makes a class of all jobs of a trace with one model. They run packed on their nodes, at the best
// batch size; what a submitter asked for bounds the width alone.
func readTraceWorkload(path string, f *planTrace) (*workload, error) {
	apps, err := simulate.ReadApps(f.profiles)
	if err != nil {
		return nil, inputs.AppsError(err)
	}
	t, err := simulate.ReadTrace(path, trace.Options{})
	if err != nil {
		return nil, err
	}
	hours, err := f.hours(t)
	if err != nil {
		return nil, err
	}
	restart, err := parseByModel("restart-overhead", f.restart, planRestart)
	if err != nil {
		return nil, err
	}
	widest, err := parseByModel("max-gpus", f.widest, 0)
	if err != nil {
		return nil, err
	}
	w := &workload{path: path, types: []gpuType{{price: 1}}, warnings: t.Warnings}
	jobs := jobsByModel(t)
	for _, model := range slices.Sorted(maps.Keys(jobs)) {
		app, ok := apps[model]
		if !ok {
			return nil, term.Usagef("--profiles %s: no profile of the application %q of %s, want one", f.profiles,
				model, path)
		}
		k := jobKind{name: model, rate: float64(len(jobs[model])) / hours, weight: 1, restart: restart.of(model) / 3600,
			most: int(widest.of(model))}
		if k.most == 0 {
			k.most = mostAsked(jobs[model])
		}
		k.most = min(k.most, maxWidth)
		times, err := f.jobsPerApp(t, jobs[model], app)
		if err != nil {
			return nil, err
		}
		k.epochs = stagesOf(speedup.ChainOf(app, f.nodeGPUs(), k.most, sched.BatchRange{}), times)
		if k.epochs == nil {
			return nil, term.Usagef("--profiles %s: application %q cannot be run on %s or fewer, want it to be "+
				"possible",
				f.profiles, model, term.Counted(k.most, "GPU"))
		}
		w.kinds = append(w.kinds, k)
	}
	return w, nil
}

// hours returns the time in which the jobs of a trace arrive.
func (f *planTrace) hours(t *trace.Trace) (float64, error) {
	if f.window != "" {
		seconds, err := positive("window", f.window)
		return seconds / 3600, err
	}
	last := t.Jobs[len(t.Jobs)-1].Spec.Submit
	if last <= 0 {
		return 0, term.Usagef("all jobs of %s are submitted at once, want --window SECONDS", t.Path)
	}
	return float64(last) / 3600e9, nil
}

func jobsByModel(t *trace.Trace) map[string][]*trace.Job {
	jobs := make(map[string][]*trace.Job)
	for i := range t.Jobs {
		j := &t.Jobs[i]
		jobs[j.Spec.Model] = append(jobs[j.Spec.Model], j)
	}
	return jobs
}

// mostAsked returns the GPUs that the widest of jobs may have.
func mostAsked(jobs []*trace.Job) int {
	most := 0
	for _, j := range jobs {
		most = max(most, int(j.Spec.GPUs.Max))
	}
	return most
}

// jobsPerApp returns how many times what its profile says is to be done the mean of jobs does: by what the trace says
// they took as they were asked for; once where the trace says nothing.
func (f *planTrace) jobsPerApp(t *trace.Trace, jobs []*trace.Job, app speedup.App) (float64, error) {
	if t.Profiled {
		return 1, nil
	}
	sum := 0.0
	for _, j := range jobs {
		once := f.asAsked(j, app)
		if math.IsInf(once, 1) {
			return 0, term.Usagef("--profiles %s: job %s of %s cannot be run as it asks, want it to be possible",
				f.profiles, j.Spec.Name, t.Path)
		}
		sum += j.Duration.Seconds() / once
	}
	if sum == 0 {
		return 0, term.Usagef("%s: all jobs of application %q take no time, want some that do", t.Path,
			jobs[0].Spec.Model)
	}
	return sum / float64(len(jobs)), nil
}

// asAsked returns the seconds that an application takes on what a job asks for; +Inf = it cannot be run so.
func (f *planTrace) asAsked(j *trace.Job, app speedup.App) float64 {
	gpus, seconds := int(j.Spec.GPUs.Want), 0.0
	for phase, size := range app.Sizes() {
		_, speed := app.Best(phase, gpus, (gpus+f.nodeGPUs()-1)/f.nodeGPUs(), j.Spec.Batch)
		seconds += size / speed
	}
	return seconds
}

// stagesOf returns the epochs of a chain gone through so many times, nil if one of them cannot be run. Speeds are
// progress per second.
func stagesOf(chain speedup.Chain, times float64) []stage {
	var list []stage
	for _, p := range chain {
		c := curve{speed: 1}
		for gpus, speed := range p.Speed {
			if speed > 0 {
				c.widths, c.speeds = append(c.widths, gpus), append(c.speeds, speed)
			}
		}
		if len(c.widths) == 0 {
			return nil
		}
		list = append(list, stage{size: times * p.Size / 3600, on: []curve{c}})
	}
	return list
}

// byModel is a number for each model.
type byModel struct {
	models map[string]float64
	others float64
}

func (b *byModel) of(model string) float64 {
	if x, ok := b.models[model]; ok {
		return x
	}
	return b.others
}

// parseByModel reads MODEL=NUMBER,...,NUMBER; the last, def without it, is for other models.
func parseByModel(flag, text string, def float64) (*byModel, error) {
	all := &byModel{map[string]float64{}, def}
	if text == "" {
		return all, nil
	}
	for _, part := range strings.Split(text, ",") {
		model, number, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			model, number = "", model
		}
		x, err := strconv.ParseFloat(number, 64)
		if _, twice := all.models[model]; err != nil || !(x >= 0 && x <= 1e9) || twice || named && model == "" {
			return nil, term.Usagef("--%s %q, want a number, or MODEL=NUMBER,... and a number for others, each "+
				"model once", flag, text)
		}
		all.models[model] = x
		if !named {
			all.others = x
		}
	}
	return all, nil
}

// warn says what is odd about the workload.
func (w *workload) warn() string {
	text := ""
	for _, warning := range w.warnings {
		text += fmt.Sprintf("trainyard: warning: %s: %s\n", w.path, warning)
	}
	return text
}
