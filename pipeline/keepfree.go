package pipeline

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// keepFree are the GPUs kept in one walk for the first job that does not fit. Only those that may not be stopped must
// leave them alone: others can be preempted for it. Without it a wide job starts after the last of a stream of narrow
// ones that may not be stopped, whatever its rank.
type keepFree struct {
	on   bool
	job  sched.JobID // for whom; None: no one
	gpus []sched.GPUID

	all []sched.JobID // look works on it
}

// forget forgets the walk before.
func (k *keepFree) forget() { k.job, k.gpus = sched.None, k.gpus[:0] }

// look keeps GPUs for job id, which does not fit, if it is the first such job of the walk and could ever fit: those
// that the placement would give it if no one held any, so that they are the same in every walk.
func (k *keepFree) look(v *sched.View, l *sched.Ledger, place sched.Placer, id sched.JobID, n int) {
	if !k.on || k.job != sched.None {
		return
	}
	mark := l.Mark()
	k.all = append(k.all[:0], l.Holders()...)
	for _, h := range k.all {
		l.Release(h)
	}
	if place.Fits(v, l, id, n) {
		if gpus, ok := place.Place(v, l, id, n, k.gpus[:0]); ok {
			k.job, k.gpus = id, gpus
		}
	}
	l.Undo(mark)
	l.Commit()
}

// bars reports whether job id, which may not be stopped, would take GPUs that are kept for another.
func (k *keepFree) bars(v *sched.View, leave sched.Unsaved, id sched.JobID, gpus []sched.GPUID) bool {
	return k.mayBar(v, leave, id) &&
		slices.ContainsFunc(gpus, func(g sched.GPUID) bool { return slices.Contains(k.gpus, g) })
}

// mayBar reports whether GPUs are kept for another job, which job id must leave alone.
func (k *keepFree) mayBar(v *sched.View, leave sched.Unsaved, id sched.JobID) bool {
	return k.job != sched.None && k.job != id && leave.Protects(&v.Jobs[id])
}
