package trace

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Summary describes a trace: how much it asks for, how wide and how long its jobs are, and whose they are.
type Summary struct {
	Jobs        int
	First, Last sched.Time       // first and last submission
	Span        time.Duration    // Last - First
	GPUTime     sched.GPUSeconds // sum of width times true duration over all jobs
	MeanGPUs    float64          // width of a job, averaged over jobs
	Widths      []WidthShare     // by rising width
	Duration    Quantiles        // of the jobs' true run times
	Models      []Count          // jobs by model, most first, ties by name; "" = unknown
	Classes     []Count          // jobs by class, likewise
	Users       []Count          // jobs by user, likewise
	Groups      []Count          // jobs by group, likewise

	States   []Share          // jobs by the word for their end, likewise
	Types    []Share          // jobs by the GPU type they ask for, likewise
	Partial  int              // jobs that ask for parts of a GPU; all else here counts whole GPUs
	AskedFor sched.GPUSeconds // GPUTime, were parts of a GPU no more than that
	Arrivals Arrivals
}

// Share says how much of a trace the jobs that have something in common make up.
type Share struct {
	Name      string // "" = unknown
	Jobs      int
	JobShare  float64          // of all jobs
	GPUTime   sched.GPUSeconds // sum of width times true duration
	TimeShare float64          // of all GPU time; 0 if that is 0
}

// WidthShare says how much of a trace the jobs of one width make up.
type WidthShare struct {
	GPUs      int
	Jobs      int
	JobShare  float64 // of all jobs
	TimeShare float64 // of all GPU time; 0 if that is 0
}

// Quantiles of a set of durations. A quantile q is the smallest value that at least the share q of all values does not
// exceed, hence always one of them.
type Quantiles struct{ Min, P10, P50, P90, P95, P99, Max, Mean time.Duration }

// Count is how many jobs have a name.
type Count struct {
	Name string
	Jobs int
}

// MeanDemand is the number of GPUs that would be busy on average between the first and the last submission if every
// job ran at once: GPUTime over Span. It counts all work of all jobs, also what would be done after the last
// submission. It is 0, meaning undefined, where Span is 0: a single job, or all submitted at the same time.
func (s Summary) MeanDemand() float64 {
	if s.Span <= 0 {
		return 0
	}
	return float64(s.GPUTime) / s.Span.Seconds()
}

// OfferedLoad is MeanDemand over the number of GPUs of a cluster: above 1 its queue grows as long as jobs arrive. It is
// 0, meaning undefined, where MeanDemand is, or if gpus < 1.
func (s Summary) OfferedLoad(gpus int) float64 {
	if gpus < 1 {
		return 0
	}
	return s.MeanDemand() / float64(gpus)
}

// Describe summarises t; the zero Summary stands for a trace without jobs.
func Describe(t *Trace) Summary {
	if len(t.Jobs) == 0 {
		return Summary{}
	}
	s := Summary{Jobs: len(t.Jobs), First: t.Jobs[0].Spec.Submit, Last: t.Jobs[len(t.Jobs)-1].Spec.Submit}
	s.Span = s.Last.Sub(s.First)
	widths := make(map[int]*widthSum)
	durations := make([]time.Duration, len(t.Jobs))
	for i := range t.Jobs {
		j := &t.Jobs[i]
		durations[i] = j.Duration
		w := widths[int(j.Spec.GPUs.Want)]
		if w == nil {
			w = new(widthSum)
			widths[int(j.Spec.GPUs.Want)] = w
		}
		w.jobs++
		w.seconds += j.Duration.Seconds()
		s.AskedFor += sched.GPUSeconds(j.Demand() * j.Duration.Seconds())
		if j.MilliGPU > 0 {
			s.Partial++
		}
	}
	s.addWidths(widths)
	s.States = shares(t.Jobs, state, s.GPUTime)
	s.Types = shares(t.Jobs, gpuType, s.GPUTime)
	s.Arrivals = arrivals(t, s.Span)
	s.Duration = quantiles(durations)
	s.Models = count(t.Jobs, model)
	s.Classes = count(t.Jobs, class)
	s.Users = count(t.Jobs, user)
	s.Groups = count(t.Jobs, group)
	return s
}

type widthSum struct {
	jobs    int
	seconds float64
}

// addWidths fills in what comes of the sums by width, in order of width so that rounding is the same each time.
func (s *Summary) addWidths(widths map[int]*widthSum) {
	for n, w := range widths {
		s.Widths = append(s.Widths, WidthShare{GPUs: n, Jobs: w.jobs, JobShare: float64(w.jobs) / float64(s.Jobs)})
	}
	slices.SortFunc(s.Widths, func(a, b WidthShare) int { return cmp.Compare(a.GPUs, b.GPUs) })
	for i := range s.Widths {
		w := &s.Widths[i]
		w.TimeShare = float64(w.GPUs) * widths[w.GPUs].seconds
		s.GPUTime += sched.GPUSeconds(w.TimeShare)
		s.MeanGPUs += float64(w.GPUs) * w.JobShare
	}
	for i := range s.Widths {
		if s.GPUTime > 0 {
			s.Widths[i].TimeShare /= float64(s.GPUTime)
		}
	}
}

// quantiles sorts values, of which there is at least one.
func quantiles(values []time.Duration) Quantiles {
	slices.Sort(values)
	at := func(q float64) time.Duration {
		return values[max(0, int(math.Ceil(q*float64(len(values))))-1)]
	}
	sum := 0.0
	for _, v := range values {
		sum += v.Seconds()
	}
	return Quantiles{Min: values[0], P10: at(.10), P50: at(.50), P90: at(.90), P95: at(.95), P99: at(.99),
		Max: values[len(values)-1], Mean: sched.Seconds(sum / float64(len(values)))}
}

// shares returns what jobs make up by the word in a column; nil if no job has one.
func shares(jobs []Job, m meaning, all sched.GPUSeconds) []Share {
	counts := count(jobs, m)
	list := make([]Share, len(counts))
	at := make(map[string]*Share, len(counts))
	for i, c := range counts {
		list[i] = Share{Name: c.Name, Jobs: c.Jobs, JobShare: float64(c.Jobs) / float64(len(jobs))}
		at[c.Name] = &list[i]
	}
	if counts == nil {
		return nil
	}
	for i := range jobs {
		at[*label(&jobs[i], m)].GPUTime += sched.GPUSeconds(
			float64(jobs[i].Spec.GPUs.Want) * jobs[i].Duration.Seconds())
	}
	for i := range list {
		if all > 0 {
			list[i].TimeShare = float64(list[i].GPUTime / all)
		}
	}
	return list
}

// count counts jobs by the word in a column; nil if no job has one.
func count(jobs []Job, m meaning) []Count {
	number := make(map[string]int)
	for i := range jobs {
		number[*label(&jobs[i], m)]++
	}
	if number[""] == len(jobs) {
		return nil
	}
	list := make([]Count, 0, len(number))
	for name, n := range number {
		list = append(list, Count{name, n})
	}
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Name, b.Name))
	})
	return list
}
