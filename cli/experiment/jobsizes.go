package experiment

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// The experiment takes the first jobs of each trace, and splits what it judges into stretches of equal counts.
const (
	sizesJobs   = 6000
	sizesFirst  = 20 // jobs that have ended before the first one that is judged
	sizesBlocks = 10
	mostBits    = 20 // a job: what was held to be impossible costs no more
)

// sizesTraces are the recorded traces, below the folder of data.
var sizesTraces = []struct{ name, path string }{
	{"Philly", "traces/philly/philly_gpu_jobs.csv.gz"},
	{"Philly 2869ce", "traces/philly_vc/2869ce_oct_nov.csv"},
	{"Venus", "traces/venus/venus_gpu_jobs.csv.gz"},
	{"PAI", "traces/pai/pai_terminated_tasks_sample.csv.gz"},
	{"Acme Kalos", "traces/acme/kalos_completed_319.csv"},
	{"PAL 1", "pal/traces/workload-1.csv"},
}

// sizesClasses are the jobs that are taken to be alike: each leaves of a job what the class goes by. "worth" is what
// model/remaining mixes; the others are one class, mixed with all jobs.
var sizesClasses = []struct {
	name string
	of   func(*sched.JobSpec) sched.JobSpec
}{
	{"all", func(*sched.JobSpec) sched.JobSpec { return sched.JobSpec{} }},
	{"group", func(s *sched.JobSpec) sched.JobSpec { return sched.JobSpec{Model: s.Group} }},
	{"user", func(s *sched.JobSpec) sched.JobSpec { return sched.JobSpec{Model: s.User} }},
	{"model", func(s *sched.JobSpec) sched.JobSpec { return sched.JobSpec{Model: s.Model} }},
	{"width", func(s *sched.JobSpec) sched.JobSpec { return sched.JobSpec{Model: fmt.Sprint(s.GPUs.Want)} }},
	{"group and width", func(s *sched.JobSpec) sched.JobSpec {
		if s.Group == "" {
			return sched.JobSpec{}
		}
		return sched.JobSpec{Model: fmt.Sprint(s.Group, " ", s.GPUs.Want)}
	}},
	{"worth", func(s *sched.JobSpec) sched.JobSpec {
		return sched.JobSpec{Name: s.Name, User: s.User, Model: s.Model, GPUs: s.GPUs}
	}},
}

// sizesRow is how well one class foresees the sizes of a trace's jobs.
type sizesRow struct {
	Trace   string            `json:"trace"`
	Size    string            `json:"size"` // duration at the asked width, or service in GPU time
	Classes string            `json:"classes"`
	Jobs    int               `json:"jobs"`       // that were judged
	Bits    float64           `json:"bits"`       // a job: -log2 of the chance of its size, to a factor of 2^(1/4)
	Saved   simulate.Interval `json:"bits_saved"` // a job, against all jobs as one class
	Under   [3]float64        `json:"under"`      // shares of jobs below the 10, 50, 90 % quantiles that were foreseen
}

// sizesTrace is a trace whose jobs' sizes are foreseen.
type sizesTrace struct {
	name string
	jobs []trace.Job
}

// sizesExperiment asks which classes show the sizes of jobs: each size is judged by what was known when its job came,
// from jobs that had ended by then and those that still ran.
func sizesExperiment(ctx context.Context, w io.Writer, o Options) error {
	traces := []sizesTrace{{"testbed", trace.Testbed(1).Jobs}}
	if o.Data != "" {
		for _, x := range sizesTraces {
			t, err := trace.Read(filepath.Join(o.Data, filepath.FromSlash(x.path)), trace.Options{})
			if err != nil {
				return fmt.Errorf("experiment: sizes: %w", err)
			}
			traces = append(traces, sizesTrace{x.name, t.Jobs[:min(len(t.Jobs), sizesJobs)]})
		}
	}
	var rows []sizesRow
	for _, t := range traces {
		for _, size := range []string{"duration", "service"} {
			of, err := t.rows(ctx, size)
			if err != nil {
				return err
			}
			rows = append(rows, of...)
		}
	}
	return o.show(w, struct {
		Schema     string     `json:"schema"`
		Experiment string     `json:"experiment"`
		Rows       []sizesRow `json:"rows"`
	}{"trainyard.experiment/v1", "sizes", rows}, func(w io.Writer) error {
		return printSizes(w, rows, o.Data == "")
	})
}

// rows judges the classes that differ in the trace, all jobs first.
func (t *sizesTrace) rows(ctx context.Context, size string) ([]sizesRow, error) {
	var rows []sizesRow
	var pooled []float64
	for _, c := range sizesClasses {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if c.name != "all" && !t.divides(c.of) {
			continue
		}
		r := sizesRow{Trace: t.name, Size: size, Classes: c.name}
		bits := r.judge(t.jobs, c.of)
		if len(bits) == 0 {
			return nil, fmt.Errorf("experiment: sizes: %s: fewer than %d jobs have ended before others came",
				t.name, sizesFirst)
		}
		if c.name == "all" {
			pooled = bits
		}
		r.Jobs, r.Saved = len(bits), saved(pooled, bits)
		rows = append(rows, r)
	}
	return rows, nil
}

// divides reports whether two jobs are of different classes, and two of one.
func (t *sizesTrace) divides(of func(*sched.JobSpec) sched.JobSpec) bool {
	seen := make(map[string]bool)
	for i := range t.jobs {
		s := of(&t.jobs[i].Spec)
		seen[fmt.Sprint(s.Model, " ", s.GPUs.Want)] = true
	}
	return len(seen) > 1 && len(seen) < len(t.jobs)
}

// judge returns the bits of each job, in order of submission, and fills in the row but for Jobs and Saved. Jobs run
// from when they come, on GPUs without end: what is learned does not depend on a schedule.
func (r *sizesRow) judge(jobs []trace.Job, of func(*sched.JobSpec) sched.JobSpec) []float64 {
	v, learned := &sched.View{Jobs: make([]sched.Job, 0, len(jobs))}, remaining.NewSizes()
	order := make([]int, len(jobs)) // by end
	for i := range order {
		order[i] = i
	}
	end := func(i int) sched.Time { return jobs[i].Spec.Submit.Add(jobs[i].Duration) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(end(a), end(b)) })
	var bits []float64
	var under [3]int
	ended := 0
	for i := range jobs {
		for ; ended < len(order) && end(order[ended]) <= jobs[i].Spec.Submit; ended++ {
			v.Now = end(order[ended])
			finish(v, learned, sched.JobID(order[ended]))
		}
		v.Now = jobs[i].Spec.Submit
		spec, rate := of(&jobs[i].Spec), 1.0
		if r.Size == "service" {
			rate = jobs[i].Demand()
		}
		v.Jobs = append(v.Jobs, sched.Job{Spec: &spec, State: sched.Active, Attempt: sched.Running,
			WorkFrom: v.Now, LastStart: v.Now, Rate: rate})
		id := sched.JobID(i)
		learned.Observe(v, &sched.Event{Time: v.Now, Kind: sched.JobArrived, Job: id, Spec: &spec})
		size := jobs[i].Duration.Seconds() * rate
		if ended < sizesFirst || !(size > 0) {
			continue
		}
		const half = 1.0905077326652577 // 2^(1/8)
		chance := learned.Larger(v, id, size/half) - learned.Larger(v, id, size*half)
		bits = append(bits, -math.Log2(max(chance, math.Exp2(-mostBits))))
		larger := learned.Larger(v, id, size)
		for q, level := range []float64{.9, .5, .1} {
			if larger > level {
				under[q]++
			}
		}
	}
	for i, x := range bits {
		r.Bits += (x - r.Bits) / float64(i+1)
	}
	for q := range under {
		r.Under[q] = float64(under[q]) / float64(max(len(bits), 1))
	}
	return bits
}

// finish ends job id now.
func finish(v *sched.View, learned *remaining.Sizes, id sched.JobID) {
	j := &v.Jobs[id]
	work := j.WorkNow(v.Now)
	j.State, j.Attempt, j.Outcome, j.Work = sched.Done, sched.Ended, sched.Finished, work
	learned.Observe(v, &sched.Event{Time: v.Now, Kind: sched.AttemptEnded, Job: id, Outcome: sched.Finished,
		Work: work})
}

// saved returns the bits that a class saves a job, with an interval over stretches of the trace.
func saved(pooled, bits []float64) simulate.Interval {
	blocks := min(sizesBlocks, len(bits))
	means := make([]float64, blocks)
	for b := range means {
		from, to := b*len(bits)/blocks, (b+1)*len(bits)/blocks
		for i := from; i < to; i++ {
			means[b] += (pooled[i] - bits[i]) / float64(to-from)
		}
	}
	return simulate.Bootstrap(means)
}

const sizesFoot = `
bits = -log2 of the chance that was given to a job's size, to within a factor
of 2^(1/4), before it ran, 20 at most: fewer are better. saved = bits a job
against all jobs as one class, mean over ten stretches of the trace with a
95 % bootstrap interval. under = shares of jobs below the 10, 50 and 90 %
quantiles that were foreseen: 10 50 90 are right. worth = what worth goes by:
user and name, name, model, width, all. A class that holds all jobs, or one
each, is left out.
`

// printSizes writes rows; bare: those of recorded traces are missing.
func printSizes(w io.Writer, rows []sizesRow, bare bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Which classes show the sizes of jobs before they run: first %d jobs of a trace\n", sizesJobs)
	for i := range rows {
		r := &rows[i]
		if i == 0 || r.Trace != rows[i-1].Trace || r.Size != rows[i-1].Size {
			fmt.Fprintf(&b, "\n%s, %s: %d jobs\n%-16s %7s %-24s %s\n", r.Trace, r.Size, r.Jobs, "classes", "bits",
				"saved", "under, %")
		}
		fmt.Fprintf(&b, "%-16s %7.2f %-24s %2.0f %2.0f %2.0f\n", r.Classes, r.Bits, short(r.Saved), 100*r.Under[0],
			100*r.Under[1], 100*r.Under[2])
	}
	b.WriteString(sizesFoot)
	if bare {
		b.WriteString("\nNot run without --data FOLDER, for the files of these traces in it:\n")
		for _, x := range sizesTraces {
			fmt.Fprintf(&b, "%-16s %s\n", x.name, x.path)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
