package pipeline

import (
	"slices"

	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// books say who holds which GPUs and who waits: as the View has it between walks, and on scratch during one.
type books struct {
	ledger *sched.Ledger
	jobs   []entry       // by JobID
	here   []sched.JobID // those that are not away, and some that are
	user   []int32       // GPUs held, by user id
	waits  int           // jobs that wait
	given  given         // what was given up: GPUs, or the rank of their holder
	sets   arena.Sets
}

// entry is what the pipeline knows of one job.
type entry struct {
	key   sched.Key  // Value is at time 0: the key now is Value + Slope*now
	due   sched.Time // when the key ceases to hold; Never
	group int32      // None when in no group
	pos   int32
	shape int32
	user  int32
	in    place
	list  bool // in ranks.list
	here  bool // in books.here
}

type place uint8

const (
	away    place = iota // not eligible, or done
	waiting              // eligible, nothing booked
	holding              // has booked GPUs
)

// grow makes room for job id; more is how many jobs are expected in all.
func (b *books) grow(id sched.JobID, more int) {
	b.jobs = grown(b.jobs, int(id), more)
	for int(id) >= len(b.jobs) {
		b.jobs = append(b.jobs, entry{group: sched.None, due: sched.Never})
	}
}

// enlist notes the user of job id, which waits from now on.
func (b *books) enlist(id sched.JobID, user int32) {
	for int(user) >= len(b.user) {
		b.user = append(b.user, 0)
	}
	x := &b.jobs[id]
	x.user, x.in = user, waiting
	b.waits++
	b.come(id)
}

// come lists job id among those that are not away.
func (b *books) come(id sched.JobID) {
	x := &b.jobs[id]
	if x.here {
		return
	}
	if x.here = true; len(b.here) == cap(b.here) {
		b.dropAway()
		if len(b.here) > cap(b.here)/2 {
			b.here = slices.Grow(b.here, len(b.here)+1)
		}
	}
	b.here = append(b.here, id)
}

// dropAway takes off the list who is away: of all jobs that there were, few are not.
func (b *books) dropAway() {
	b.here = slices.DeleteFunc(b.here, func(id sched.JobID) bool {
		x := &b.jobs[id]
		x.here = x.in != away
		return !x.here
	})
}

// present returns the jobs that are not away, in JobID order. The list holds until one comes.
func (b *books) present() []sched.JobID {
	if b.dropAway(); !slices.IsSorted(b.here) {
		slices.Sort(b.here)
	}
	return b.here
}

// ahead counts the jobs that wait and rank before job id at time t in seconds.
func (b *books) ahead(id sched.JobID, t float64) (n int32) {
	for _, o := range b.here {
		if b.jobs[o].in == waiting && o != id && b.beforeAt(o, id, t) {
			n++
		}
	}
	return n
}

// move notes where job id is now.
func (b *books) move(id sched.JobID, to place) {
	x := &b.jobs[id]
	if x.in == waiting {
		b.waits--
	}
	if to == waiting {
		b.waits++
	}
	if x.in = to; to != away {
		b.come(id)
	}
}

// standing returns where job id belongs by the ledger: it holds GPUs, or waits.
func (b *books) standing(id sched.JobID) place {
	if len(b.ledger.Set(id)) == 0 {
		return waiting
	}
	return holding
}

// count notes that the user of job id holds n GPUs more.
func (b *books) count(id sched.JobID, n int) { b.user[b.jobs[id].user] += int32(n) }

// book enters the set, which it copies, into the ledger.
func (b *books) book(id sched.JobID, set []sched.GPUID) {
	b.ledger.Book(id, b.sets.CopyOf(set))
	b.count(id, len(set))
}

// unbook takes from job id what it holds, for good.
func (b *books) unbook(id sched.JobID) {
	set := b.ledger.Release(id)
	b.given.note(b.ledger, set)
	b.count(id, -len(set))
	b.sets.Recycle(set)
}

// suspend takes from job id what it holds and returns it, to be given back (see giveBack) or up (see giveUp).
func (b *books) suspend(id sched.JobID) []sched.GPUID {
	set := b.ledger.Release(id)
	b.count(id, -len(set))
	return set
}

// giveBack undoes suspend.
func (b *books) giveBack(id sched.JobID, set []sched.GPUID) {
	b.ledger.Book(id, set)
	b.count(id, len(set))
}

// giveUp makes suspend final: job id waits.
func (b *books) giveUp(id sched.JobID, set []sched.GPUID) {
	b.given.note(b.ledger, set)
	b.sets.Recycle(set)
	b.move(id, waiting)
}

// beforeAt reports whether job i ranks before job j at time t in seconds.
func (b *books) beforeAt(i, j sched.JobID, t float64) bool {
	return beforeAt(&b.jobs[i], &b.jobs[j], i, j, t)
}

// classOf returns what ranks job id before its order does, the smaller first.
func (b *books) classOf(id sched.JobID) int64 { return b.jobs[id].key.Level &^ sched.MaxLevel }

// inOrder is beforeAt whatever the classes of jobs.
func (b *books) inOrder(i, j sched.JobID, t float64) bool {
	x, y := b.jobs[i], b.jobs[j]
	x.key.Level, y.key.Level = x.key.Level&sched.MaxLevel, y.key.Level&sched.MaxLevel
	return beforeAt(&x, &y, i, j, t)
}

// grown returns list with capacity for element i, in one step for as many as are expected in all.
func grown[T any](list []T, i, expected int) []T {
	if i < cap(list) {
		return list
	}
	return slices.Grow(list, max(expected-len(list), 1))
}
