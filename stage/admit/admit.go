// Package admit holds the rules that say what a misfit means to those behind it in the order.
package admit

import (
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Stop ends the walk at the first job that does not fit: strict order, head-of-line blocking.
type Stop struct{}

var _ sched.Admitter = Stop{}

// Begin does nothing.
func (Stop) Begin(*sched.View, *sched.Ledger) {}

// Misfit ends the walk.
func (Stop) Misfit(*sched.View, *sched.Ledger, sched.JobID) bool { return true }

// May always agrees.
func (Stop) May(*sched.View, sched.JobID, []sched.GPUID) bool { return true }

// Easy gives the first job that does not fit a reservation and lets those behind it start only if they do not delay
// it: they end before it can start, or use no GPU it is to have. It assumes an estimate of the work of every job.
//
// The reservation is exact GPUs: running jobs are taken to end in the order of their estimates, and the first moment at
// which the placer finds a place is its time. Source: EASY backfilling, Lifka, JSSPP'95.
type Easy struct {
	Work  sched.Remainer // when running jobs will end
	Place sched.Placer   // where the first job would go

	set    bool
	shadow sched.Time
	gpus   []sched.GPUID
	ends   []endAt
}

type endAt struct {
	at  sched.Time
	job sched.JobID
}

var _ sched.Admitter = (*Easy)(nil)

// Begin forgets the reservation of the walk before.
func (e *Easy) Begin(*sched.View, *sched.Ledger) { e.set = false }

// Misfit makes the reservation for the first job, and goes on.
func (e *Easy) Misfit(v *sched.View, l *sched.Ledger, j sched.JobID) bool {
	if e.set {
		return false
	}
	e.set = true
	e.ends = e.ends[:0]
	for _, h := range l.Holders() {
		e.ends = append(e.ends, endAt{e.endOf(v, h), h})
	}
	slices.SortFunc(e.ends, func(a, b endAt) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return int(a.job - b.job)
	})
	e.reserve(v, l, j)
	return false
}

// reserve releases holders in the order of their ends until job j fits, notes when and where, and undoes it all.
func (e *Easy) reserve(v *sched.View, l *sched.Ledger, j sched.JobID) {
	n := int(v.Jobs[j].Spec.GPUs.Want)
	mark := l.Mark()
	defer l.Commit()
	defer l.Undo(mark)
	e.shadow, e.gpus = sched.Never, e.gpus[:0]
	for i, h := range e.ends {
		l.Release(h.job)
		if i+1 < len(e.ends) && e.ends[i+1].at == h.at {
			continue
		}
		if gpus, ok := e.Place.Place(v, l, j, n, e.gpus); ok {
			e.shadow, e.gpus = h.at, gpus
			return
		}
	}
}

func (e *Easy) endOf(v *sched.View, j sched.JobID) sched.Time {
	start := v.Now
	if job := &v.Jobs[j]; job.Attempt == sched.Running {
		start = max(start, job.WorkFrom)
	}
	return start.Add(max(e.Work.Remaining(v, j), time.Nanosecond))
}

// May reports whether job j ends before the reservation, or leaves its GPUs alone.
func (e *Easy) May(v *sched.View, j sched.JobID, gpus []sched.GPUID) bool {
	if !e.set || v.Now.Add(e.Work.Remaining(v, j)) <= e.shadow {
		return true
	}
	return !slices.ContainsFunc(gpus, func(g sched.GPUID) bool { return slices.Contains(e.gpus, g) })
}
