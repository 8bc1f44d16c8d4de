package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

// keptMost is of how many jobs a file keeps single attempts that would else be too large.
const keptMost = 2000

// keptDoc says what is kept.
type keptDoc struct {
	Jobs int    `json:"jobs"`
	Of   int    `json:"of"`
	Says string `json:"says"`

	ids       []int // in order
	described []timeline.Job
}

// sumsDoc is what a page else sums up over all jobs.
type sumsDoc struct {
	Quantiles map[string][]float64 `json:"quantiles"` // of finished jobs, by figure, evenly spaced
	Users     []userSums           `json:"users"`
}

// userSums is what came of the jobs of a user.
type userSums struct {
	User      string  `json:"user"`
	Jobs      int     `json:"jobs"`
	Finished  int     `json:"finished"`
	Hours     float64 `json:"gpu_hours"`
	Wait      float64 `json:"wait_s"` // of finished jobs, in all
	Preempted int64   `json:"preempted"`
	Lost      float64 `json:"lost_gpu_hours"`
	KWh       float64 `json:"kwh"`
}

// reduced returns the report with the jobs that matter most alone; nil if there are no more.
func (r *Report) reduced() *Report {
	jobs := r.described()
	if len(jobs) <= keptMost {
		return nil
	}
	small := *r
	small.whole = r
	ids := r.foremost(jobs)
	small.kept = &keptDoc{Jobs: len(ids), Of: len(jobs), ids: ids, described: picked(jobs, ids)}
	small.kept.Says = fmt.Sprintf("The data would have more than %.3g MB: attempts of %d of %d jobs are kept, those "+
		"that had most GPU time or waited for most of it. Figures, distributions, series, losses and users are of all "+
		"jobs; shares of GPU time by node and time are, too. A higher --report-limit keeps all.",
		float64(r.Limit)/1e6, len(ids), len(jobs))
	small.Systems = slices.Clone(r.Systems)
	place := map[sched.JobID]sched.JobID{}
	for n, id := range ids {
		place[sched.JobID(id)] = sched.JobID(n)
	}
	for i := range small.Systems {
		s := &small.Systems[i]
		s.sums = sumsOf(s.Jobs, jobs)
		if s.Jobs = picked(s.Jobs, ids); s.Timeline == nil {
			continue
		}
		s.heat = heatOf(s.Timeline)
		for k := range s.Timeline.Attempts {
			a := s.Timeline.Attempts[k]
			n, ok := place[a.Job]
			if !ok {
				continue
			}
			a.Job = n
			if id, named := a.Other(); named {
				if other, known := place[id]; known {
					a.Reason.Job = other
				} else {
					a.Reason.Job = sched.None
				}
			}
			s.attempts = append(s.attempts, a)
		}
	}
	return &small
}

// foremost returns the jobs that had most GPU time, or waited for most of it, under any system, in order.
func (r *Report) foremost(jobs []timeline.Job) []int {
	worth := make([]float64, len(jobs))
	for i := range r.Systems {
		for k := range r.Systems[i].Jobs {
			j := &r.Systems[i].Jobs[k]
			waited := 0.0
			if j.Outcome == sched.Finished {
				waited = j.Queue().Seconds()
			}
			worth[k] = max(worth[k], float64(j.Service), waited*float64(jobs[k].GPUs.Want))
		}
	}
	ids := make([]int, len(jobs))
	for i := range ids {
		ids[i] = i
	}
	slices.SortFunc(ids, func(a, b int) int { return cmp.Or(cmp.Compare(worth[b], worth[a]), cmp.Compare(a, b)) })
	ids = slices.Clone(ids[:keptMost])
	slices.Sort(ids)
	return ids
}

// picked returns some of a list.
func picked[T any](list []T, ids []int) []T {
	few := make([]T, 0, len(ids))
	for _, i := range ids {
		few = append(few, list[i])
	}
	return few
}

// sumsOf sums up what came of all jobs.
func sumsOf(jobs []metrics.Job, said []timeline.Job) *sumsDoc {
	d := &sumsDoc{Quantiles: map[string][]float64{}, Users: []userSums{}}
	of := map[string]int{}
	values := map[string][]float64{}
	for i := range jobs {
		j := &jobs[i]
		n, known := of[said[i].User]
		if !known {
			n = len(d.Users)
			of[said[i].User] = n
			d.Users = append(d.Users, userSums{User: said[i].User})
		}
		u := &d.Users[n]
		u.Jobs++
		u.Hours += float64(j.Service) / 3600
		u.Preempted += int64(j.Preemptions)
		u.Lost += float64(j.Lost) / 3600
		u.KWh += float64(j.Energy) / 3.6e6
		if j.Outcome != sched.Finished {
			continue
		}
		u.Finished++
		u.Wait += j.Queue().Seconds()
		values["JCT"] = append(values["JCT"], j.JCT().Seconds())
		values["queue"] = append(values["queue"], j.Queue().Seconds())
		if j.Run > 0 {
			values["slow-down"] = append(values["slow-down"], j.JCT().Seconds()/j.Run.Seconds())
		}
	}
	for name, list := range values {
		slices.Sort(list)
		const steps = 400
		for i := range steps + 1 {
			d.Quantiles[name] = append(d.Quantiles[name], rounded(list[i*(len(list)-1)/steps]))
		}
	}
	slices.SortFunc(d.Users, func(a, b userSums) int {
		return cmp.Or(cmp.Compare(b.Hours, a.Hours), strings.Compare(a.User, b.User))
	})
	return d
}

// heat is the share of GPU time in which work went on, by node and time.
type heat struct {
	from    sched.Time
	width   time.Duration
	buckets int
	work    []float64 // GPU-seconds, by node, then bucket
	nodes   []timeline.Node
}

// heatOf adds up the work of attempts.
func heatOf(t *timeline.Timeline) *heat {
	l := t.Losses()
	h := &heat{from: l.From, nodes: t.Nodes, buckets: min(max(2_000_000/max(len(t.Nodes), 1), 64), 1024)}
	h.width = max(l.To.Sub(l.From)/time.Duration(h.buckets)+1, 1)
	h.work = make([]float64, len(h.nodes)*h.buckets)
	most := 0
	for i := range h.nodes {
		most = max(most, int(h.nodes[i].First)+h.nodes[i].GPUs)
	}
	nodeOf := make([]int32, most)
	for i := range h.nodes {
		for g := range h.nodes[i].GPUs {
			nodeOf[int(h.nodes[i].First)+g] = int32(i)
		}
	}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		stop := l.To
		if a.Ended != sched.None {
			stop = a.Ended
		}
		if a.Stopped != sched.None {
			stop = min(stop, a.Stopped)
		}
		if a.Work == sched.None || a.Work >= stop {
			continue
		}
		for _, run := range a.GPUs {
			for g := run.First; g < run.First+sched.GPUID(run.Count); {
				node := int(nodeOf[g])
				end := min(h.nodes[node].First+sched.GPUID(h.nodes[node].GPUs), run.First+sched.GPUID(run.Count))
				h.add(node, a.Work, stop, float64(end-g))
				g = end
			}
		}
	}
	return h
}

// add adds work of GPUs of a node.
func (h *heat) add(node int, from, to sched.Time, gpus float64) {
	for at := max(from, h.from); at < to; {
		b := int(at.Sub(h.from) / h.width)
		if b >= h.buckets {
			return
		}
		end := min(to, h.from.Add(time.Duration(b+1)*h.width))
		h.work[node*h.buckets+b] += gpus * end.Sub(at).Seconds()
		at = end
	}
}

// pack packs it, in 255ths of the GPU time of each node.
func (h *heat) pack(c *columns) {
	c.table("heat-axis", 1)
	c.ints("from_ms", 1, func(int) int64 { return int64(time.Duration(h.from) / time.Millisecond) })
	c.ints("width_us", 1, func(int) int64 { return int64(h.width / time.Microsecond) })
	c.ints("buckets", 1, func(int) int64 { return int64(h.buckets) })
	c.table("heat", len(h.work))
	c.ints("share", len(h.work), func(i int) int64 {
		whole := h.width.Seconds() * float64(h.nodes[i/h.buckets].GPUs)
		if whole <= 0 {
			return 0
		}
		return min(int64(h.work[i]/whole*255+.5), 255)
	})
}
