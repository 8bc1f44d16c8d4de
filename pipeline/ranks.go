package pipeline

import (
	"slices"

	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// ranks keep jobs in order: in heaps (groups), or in one sorted list where walks go through all jobs.
type ranks struct {
	order     sched.Orderer
	class     sched.Classer // before order; nil = none
	turns     sched.Turns   // order, if it remembers
	whole     bool          // walks go through the sorted list of all jobs instead of the groups
	keepOrder bool          // ties keep the order of the list
	holders   bool          // jobs that hold GPUs are grouped as well: they may be preempted

	groups groups
	due    arena.JobHeap // keys by the time they cease to hold
	rising bool          // some key grows while its job runs: holders may fall behind between events
	list   []sched.JobID // whole: all jobs in order; kept between walks if keepOrder
	cursor int           // whole: where the search for victims goes on in list
}

// keyOf returns the key of job id, its value as of time 0, and until when it holds: as saved, or as the order says now.
func (r *ranks) keyOf(v *sched.View, id sched.JobID, saved map[sched.JobID]entry) (k sched.Key, until sched.Time) {
	if x, ok := saved[id]; ok {
		k, until = x.key, x.due
	} else {
		k, until = r.order.Key(v, id)
		if r.class != nil {
			class, holds := r.class.Class(v, id)
			k.Level -= class * (sched.MaxLevel + 1)
			until = min(until, holds)
		}
		if k.Slope != 0 {
			k.Value = atZero(k, v.Now.Seconds())
		}
		if until != sched.Never {
			until = max(until, v.Now+1)
		}
	}
	r.rising = r.rising || k.Slope > 0
	return k, until
}

// rekey moves job id, which is not away, to the group of its key, asked for afresh unless it was saved. It reports
// whether the job holds GPUs and has fallen in rank: others may now have them.
func (r *ranks) rekey(v *sched.View, b *books, id sched.JobID, saved map[sched.JobID]entry) (fell bool) {
	x := &b.jobs[id]
	k, until := r.keyOf(v, id, saved)
	if k == x.key && until == x.due && r.stands(x) {
		return false
	}
	r.groups.remove(b.jobs, id)
	old := *x
	x.key = k
	fell = x.in == holding && x.key != old.key && beforeAt(&old, x, id, id, v.Now.Seconds())
	if until != x.due {
		x.due = until
		if until != sched.Never {
			r.due.Push(arena.JobAt{At: until, Job: id})
		}
	}
	if !r.whole && (x.in == waiting || r.holders) {
		r.groups.add(b.jobs, id)
	}
	return fell
}

// stands reports whether a job that is not away is in the group where it belongs, or in none where that is so.
func (r *ranks) stands(x *entry) bool {
	switch {
	case r.whole || x.in == holding && !r.holders:
		return x.group == sched.None
	case x.group == sched.None:
		return false
	}
	return r.groups.list[x.group].groupKey == r.groups.keyOf(x)
}

// nextDue returns when the next key ceases to hold, Never if none does.
func (r *ranks) nextDue(b *books) sched.Time {
	for len(r.due) > 0 {
		if d := r.due[0]; b.jobs[d.Job].due == d.At {
			return d.At
		}
		r.due.Pop() // it was asked for since, or the job is gone
	}
	return sched.Never
}

// enlist puts job id at the end of the list. One that was away comes back there.
func (r *ranks) enlist(b *books, id sched.JobID) {
	x := &b.jobs[id]
	if x.list {
		r.list = slices.DeleteFunc(r.list, func(k sched.JobID) bool { return k == id })
	}
	x.list = true
	r.list = append(r.list, id)
}

// sortList drops jobs that are done or not eligible from the list and sorts the others, best rank first.
func (r *ranks) sortList(b *books, now float64) {
	r.list = slices.DeleteFunc(r.list, func(id sched.JobID) bool {
		x := &b.jobs[id]
		x.list = x.in != away
		return !x.list
	})
	r.sort(b, r.list, now)
}

// sort sorts list, best rank first; ties keep their order where the system says so.
func (r *ranks) sort(b *books, list []sched.JobID, now float64) {
	slices.SortStableFunc(list, func(i, j sched.JobID) int {
		switch x, y := &b.jobs[i], &b.jobs[j]; {
		case r.keepOrder && x.key.Level == y.key.Level && valueAt(&x.key, now) == valueAt(&y.key, now):
			return 0
		case beforeAt(x, y, i, j, now):
			return -1
		}
		return 1
	})
}

// keepHolders moves each holder of the list before the first job that waits to which it need not give way: one of a
// lower class, or one behind it in order. No job overtakes one of a higher class so that a holder of no higher class
// gives way to it.
func (r *ranks) keepHolders(b *books, now float64) {
	var waits []sched.JobID
	before := make(map[sched.JobID]int) // how many that wait come before a job
	for _, id := range r.list {
		if b.jobs[id].in == waiting {
			before[id] = len(waits)
			waits = append(waits, id)
		}
	}
	for _, h := range r.list {
		if b.jobs[h].in == holding {
			before[h] = slices.IndexFunc(waits, func(w sched.JobID) bool {
				return b.classOf(w) > b.classOf(h) || b.inOrder(h, w, now)
			})
			if before[h] < 0 {
				before[h] = len(waits)
			}
		}
	}
	slices.SortStableFunc(r.list, func(i, j sched.JobID) int {
		switch x, y := b.jobs[i].in == holding, b.jobs[j].in == holding; {
		case before[i] != before[j]:
			return before[i] - before[j]
		case x != y && x:
			return -1
		case x != y:
			return 1
		case x && b.inOrder(i, j, now):
			return -1
		case x:
			return 1
		}
		return 0
	})
}

// all returns the jobs that wait or hold GPUs, best rank first, by the keys as they were asked for last.
func (r *ranks) all(b *books, now float64) []sched.JobID {
	var list []sched.JobID
	if r.whole {
		list = slices.Clone(r.list)
	} else {
		for id := range b.jobs {
			list = append(list, sched.JobID(id))
		}
	}
	list = slices.DeleteFunc(list, func(id sched.JobID) bool { return b.jobs[id].in == away })
	r.sort(b, list, now)
	return list
}

// worstHolder returns the holder that ranks last, or None.
func (r *ranks) worstHolder(b *books, now float64) sched.JobID {
	worst := sched.JobID(sched.None)
	for _, i := range r.groups.holding {
		if id := r.groups.list[i].heap[0]; worst == sched.None || b.beforeAt(worst, id, now) {
			worst = id
		}
	}
	return worst
}

// nextVictim takes the worst holder ranked below job id out of the indices, or returns None.
func (r *ranks) nextVictim(b *books, id sched.JobID, now float64) sched.JobID {
	if r.whole {
		return r.nextInList(b, id)
	}
	w := r.worstHolder(b, now)
	if w == sched.None || !b.beforeAt(id, w, now) {
		return sched.None
	}
	r.groups.remove(b.jobs, w)
	return w
}

// nextInList returns the next victim for job id: the last holder of the list that was not looked at yet, as long as it
// comes behind id.
func (r *ranks) nextInList(b *books, id sched.JobID) sched.JobID {
	for ; r.cursor >= 0; r.cursor-- {
		w := r.list[r.cursor]
		if w == id {
			return sched.None
		}
		if b.jobs[w].in == holding && b.ledger.Set(w) != nil {
			r.cursor--
			return w
		}
	}
	return sched.None
}

// regroup puts job id, which nextVictim took out, back into its group.
func (r *ranks) regroup(b *books, id sched.JobID) {
	if !r.whole {
		r.groups.add(b.jobs, id)
	}
}
