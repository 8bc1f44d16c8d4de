package report

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
)

// comparedDoc sets the systems next to one another by what jobs are: how many GPUs they ask for, and how long they run.
// It counts jobs that finished under all systems, so that each cell is of the same jobs under each.
type comparedDoc struct {
	Jobs     int       `json:"jobs"`       // that finished under all
	Quartile []float64 `json:"quartile_s"` // the run time under the first system at three quarters' ends
	Cells    []cellDoc `json:"cells"`      // by width, then quartile; those that have jobs
}

// cellDoc is jobs of like width and run time.
type cellDoc struct {
	Widths   string    `json:"gpus"`     // 1, 2, 3-4, 5-8, ...
	Quartile int       `json:"quartile"` // 1 = the shortest
	Jobs     int       `json:"jobs"`
	JCT      []float64 `json:"mean_jct_s"` // by system
	Queue    []float64 `json:"mean_queue_s"`
}

// compared returns nil where there are not several systems that had the same jobs, or no job finished under all.
func (r *Report) compared() *comparedDoc {
	if len(r.Systems) < 2 {
		return nil
	}
	first := r.Systems[0].Jobs
	var all []int
	for j := range first {
		if !slices.ContainsFunc(r.Systems, func(s System) bool {
			return len(s.Jobs) != len(first) || s.Jobs[j].Outcome != sched.Finished
		}) {
			all = append(all, j)
		}
	}
	if len(all) == 0 {
		return nil
	}
	runs := make([]time.Duration, len(all))
	for i, j := range all {
		runs[i] = first[j].Run
	}
	slices.Sort(runs)
	doc, ends := &comparedDoc{Jobs: len(all)}, make([]time.Duration, 0, 3)
	for q := 1; q < 4; q++ {
		ends = append(ends, runs[(q*len(runs)+3)/4-1])
		doc.Quartile = append(doc.Quartile, ends[q-1].Seconds())
	}
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Or(cmp.Compare(widthClass(&first[a]), widthClass(&first[b])),
			cmp.Compare(quarter(ends, &first[a]), quarter(ends, &first[b])))
	})
	for from := 0; from < len(all); {
		a, to := &first[all[from]], from
		for to < len(all) && widthClass(&first[all[to]]) == widthClass(a) &&
			quarter(ends, &first[all[to]]) == quarter(ends, a) {
			to++
		}
		cell := cellDoc{Widths: widthsOf(widthClass(a)), Quartile: quarter(ends, a) + 1, Jobs: to - from}
		for i := range r.Systems {
			jct, queue := means(r.Systems[i].Jobs, all[from:to])
			cell.JCT, cell.Queue = append(cell.JCT, rounded(jct)), append(cell.Queue, rounded(queue))
		}
		doc.Cells, from = append(doc.Cells, cell), to
	}
	return doc
}

// means returns the mean JCT and time without GPUs of the given jobs, in seconds.
func means(jobs []metrics.Job, of []int) (jct, queue float64) {
	for _, j := range of {
		jct += jobs[j].JCT().Seconds()
		queue += jobs[j].Queue().Seconds()
	}
	return jct / float64(len(of)), queue / float64(len(of))
}

// widthClass returns 0 of one GPU, 1 of two, 2 of up to 4, 3 of up to 8, and so on.
func widthClass(j *metrics.Job) int { return bits.Len32(uint32(max(j.GPUs, 1) - 1)) }

// widthsOf says the widths of a class.
func widthsOf(class int) string {
	if class < 2 {
		return fmt.Sprint(class + 1)
	}
	return fmt.Sprintf("%d-%d", 1<<(class-1)+1, 1<<class)
}

// quarter returns in which quarter of run times a job is, from 0 on; ends are those of the first three.
func quarter(ends []time.Duration, j *metrics.Job) int {
	for q, end := range ends {
		if j.Run <= end {
			return q
		}
	}
	return len(ends)
}
