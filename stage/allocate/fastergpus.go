package allocate

import (
	"cmp"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Slowdown returns the time that an iteration of job j takes on gpus, over the nominal one, > 0.
type Slowdown func(v *sched.View, j sched.JobID, gpus []sched.GPUID) float64

// repairs are the moves of jobs that run to free GPUs on which they are faster. They come after all asks were served,
// so that no job waits for GPUs that a move takes. Elastic jobs stay where they are: their widths change anyway.
type repairs struct {
	list []repair
	dst  []sched.GPUID
}

// repair is a job that may be moved.
type repair struct {
	by    int     // bidder
	here  float64 // time of an iteration over the nominal one
	stake float64 // what its delay costs, in job-seconds per second, times the work that it has left
}

// repair moves jobs where the time that they gain is more than their restart, the work that they lose and what the
// slower GPUs let them do meanwhile. The job with most at stake chooses first, ties by rank.
func (x *auction) repair(slowdown Slowdown) {
	if slowdown == nil || x.free <= 0 {
		return
	}
	r := &x.repairs
	r.list = r.list[:0]
	for i, b := range x.bidders {
		job := &x.v.Jobs[b.claim.ID]
		if b.width == 0 || b.width != b.claim.Held || b.moved || b.settled || b.stays ||
			job.Spec.GPUs.Min < job.Spec.GPUs.Max {
			continue
		}
		weight := x.priced(b).Weight
		r.list = append(r.list, repair{i, slowdown(x.v, b.claim.ID, job.Target),
			float64((weight + float64(x.price*float64(b.width))) * b.mean)})
	}
	slices.SortStableFunc(r.list, func(p, q repair) int { return cmp.Compare(q.stake, p.stake) })
	for _, c := range r.list {
		x.move(x.bidders[c.by], c.here, slowdown)
	}
}

// move moves a job if that pays.
func (x *auction) move(b *bidder, here float64, slowdown Slowdown) {
	id, l := b.claim.ID, x.scratch()
	job := &x.v.Jobs[id]
	mark := l.Mark()
	x.release(b)
	gpus, ok := x.place.Place(x.v, l, id, b.width, x.repairs.dst[:0])
	x.repairs.dst = gpus[:0]
	if ok && len(gpus) == b.width {
		asked := b.claim.asked(job.Unit())
		there := slowdown(x.v, id, gpus)
		lost := float64(b.unsaved(x.v) / asked * there)
		if float64(b.mean/asked*(here-there)) > b.restart+lost {
			slices.Sort(gpus)
			b.set = slices.Clone(gpus)
			l.Book(id, b.set)
			b.moved, b.again = true, true
			return
		}
	}
	l.Undo(mark)
}
