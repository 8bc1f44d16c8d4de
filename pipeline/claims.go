package pipeline

import (
	"slices"

	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// claims are a second ledger. Where all jobs are placed again but a move has its price, those whose turn has not come
// yet have a claim to what they held. The ledger of the books knows nothing of claims: on it a job chooses freely. On
// this one it chooses where it is in the way of no other job.
type claims struct {
	laid        bool // there are claims in the walk under way
	ledger      *sched.Ledger
	old         bool // nodes changed since the ledger was made
	sets        arena.Sets
	quarantined []sched.JobID
	apart       []sched.GPUID
}

// lay gives all that were granted GPUs, and the protected, a claim to what they held.
func (c *claims) lay(v *sched.View, g *grants, l *sched.Ledger) {
	c.laid = true
	if c.ledger == nil || c.old {
		c.ledger = sched.NewLedger(v)
		c.old = false
	} else {
		c.follow(v)
	}
	c.quarantined = append(c.quarantined[:0], c.ledger.Holders()...)
	for _, id := range c.quarantined {
		if g.to(id) == nil && len(l.Set(id)) == 0 {
			c.drop(id)
		}
	}
}

// follow brings the claims to the targets of the view, which differ little from where the last pass left them.
func (c *claims) follow(v *sched.View) {
	c.quarantined = append(c.quarantined[:0], c.ledger.Holders()...)
	for _, id := range c.quarantined {
		if !arena.SameSet(c.ledger.Set(id), v.Jobs[id].Target) {
			c.drop(id)
		}
	}
	for id := range v.Jobs {
		if t := v.Jobs[id].Target; len(t) > 0 && len(c.ledger.Set(sched.JobID(id))) == 0 {
			c.ledger.Book(sched.JobID(id), c.sets.CopyOf(t))
		}
	}
}

func (c *claims) drop(id sched.JobID) {
	if len(c.ledger.Set(id)) > 0 {
		c.sets.Recycle(c.ledger.Release(id))
	}
}

// settle has job id hold here too what it now has on the books. Whoever had a claim to any of it has none any more. A
// job that stays where it was, as most do, costs nothing.
func (c *claims) settle(id sched.JobID, set []sched.GPUID) {
	if len(set) > 0 && arena.SameSet(set, c.ledger.Set(id)) {
		return
	}
	c.drop(id)
	for _, g := range set {
		if o := c.ledger.Owner(g); o != sched.None {
			c.drop(o)
		}
	}
	if len(set) > 0 && c.ledger.Untaken(set) {
		c.ledger.Book(id, c.sets.CopyOf(set))
	}
}

// mover weighs where a job is to go that has GPUs already.
type mover struct {
	place sched.Placer
	worth sched.Mover
}

// weigh returns where job id, which could have the n GPUs gpus, is to go: there if that is worth a restart, its own and
// that of one that is in the way; else where it is in the way of none, if that is worth its own; else where it was. l
// is the ledger of the books.
func (m mover) weigh(v *sched.View, l *sched.Ledger, c *claims, id sched.JobID, n int,
	gpus []sched.GPUID) []sched.GPUID {
	was := v.Jobs[id].Target
	stays := len(was) == n && reusable(v, l, was)
	if stays && (arena.SameSet(was, gpus) || !m.worth.Worth(v, id, was, gpus)) {
		return append(gpus[:0], was...)
	}
	if !c.laid {
		return gpus
	}
	c.drop(id) // it is in the way of none but itself
	if c.ledger.Untaken(gpus) || !m.place.Fits(v, c.ledger, id, n) {
		return gpus
	}
	apart, ok := m.place.Place(v, c.ledger, id, n, c.apart[:0])
	c.apart = apart[:0]
	if !ok || !l.Untaken(apart) || m.worth.Worth(v, id, apart, gpus) {
		return gpus
	}
	if slices.Sort(apart); stays && (arena.SameSet(was, apart) || !m.worth.Worth(v, id, was, apart)) {
		apart = was
	}
	return append(gpus[:0], apart...)
}

// reusable reports whether a job may go on holding set: no job took any of it, and all of it may be used.
func reusable(v *sched.View, l *sched.Ledger, set []sched.GPUID) bool {
	for _, g := range set {
		if !v.Usable(g) {
			return false
		}
	}
	return l.Untaken(set)
}
