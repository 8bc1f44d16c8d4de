package pipeline

import (
	"slices"

	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// Where all are placed anew but a move has its price, those whose turn has not come yet have a claim to what they held.
// The ledger knows nothing of claims: on it a job chooses freely. p.claims is a second book, with claims: on it a job
// chooses where it is in nobody's way.

func (p *Pipeline) claiming() bool { return p.replaces && p.s.Move != nil }

// layClaims gives all that were granted GPUs, and the protected, a claim to what they held.
func (p *Pipeline) layClaims(v *sched.View) {
	if p.claims == nil || p.claimsOld {
		p.claims = sched.NewLedger(v)
		p.claimsOld = false
	} else {
		p.followTargets(v)
	}
	p.aside = append(p.aside[:0], p.claims.Holders()...)
	for _, id := range p.aside {
		if p.grant(id) == nil && len(p.ledger.Set(id)) == 0 {
			p.dropClaim(id)
		}
	}
	p.aside = p.aside[:0]
}

// followTargets brings the claims to the targets of the view, which differ little from where the last pass left them.
func (p *Pipeline) followTargets(v *sched.View) {
	p.aside = append(p.aside[:0], p.claims.Holders()...)
	for _, id := range p.aside {
		if !arena.SameSet(p.claims.Set(id), v.Jobs[id].Target) {
			p.dropClaim(id)
		}
	}
	for id := range v.Jobs {
		if t := v.Jobs[id].Target; len(t) > 0 && len(p.claims.Set(sched.JobID(id))) == 0 {
			p.claims.Book(sched.JobID(id), p.claimed.CopyOf(t))
		}
	}
}

func (p *Pipeline) dropClaim(id sched.JobID) {
	if len(p.claims.Set(id)) > 0 {
		p.claimed.Recycle(p.claims.Release(id))
	}
}

// claim has job id hold on both books what it has on the ledger. Whoever had a claim to any of it has none any more. A job
// that stays where it was, as most do, costs nothing.
func (p *Pipeline) claim(id sched.JobID) {
	set := p.ledger.Set(id)
	if len(set) > 0 && arena.SameSet(set, p.claims.Set(id)) {
		return
	}
	p.dropClaim(id)
	for _, g := range set {
		if o := p.claims.Owner(g); o != sched.None {
			p.dropClaim(o)
		}
	}
	if len(set) > 0 && p.claims.Untaken(set) {
		p.claims.Book(id, p.claimed.CopyOf(set))
	}
}

// weigh returns where job id, which could have the n GPUs gpus, is to go: there if that is worth a restart, its own and
// that of one who is in the way; else where nobody is in the way, if that is worth its own; else where it was.
func (p *Pipeline) weigh(v *sched.View, id sched.JobID, n int, gpus []sched.GPUID) []sched.GPUID {
	was := v.Jobs[id].Target
	stays := len(was) == n && p.reusable(v, was)
	if stays && (arena.SameSet(was, gpus) || !p.s.Move.Worth(v, id, was, gpus)) {
		return append(gpus[:0], was...)
	}
	if !p.claiming() {
		return gpus
	}
	p.dropClaim(id) // it is in nobody's way but its own
	if p.claims.Untaken(gpus) || !p.s.Place.Fits(v, p.claims, id, n) {
		return gpus
	}
	apart, ok := p.s.Place.Place(v, p.claims, id, n, p.apart[:0])
	p.apart = apart[:0]
	if !ok || !p.ledger.Untaken(apart) || p.s.Move.Worth(v, id, apart, gpus) {
		return gpus
	}
	if slices.Sort(apart); stays && (arena.SameSet(was, apart) || !p.s.Move.Worth(v, id, was, apart)) {
		apart = was
	}
	return append(gpus[:0], apart...)
}

// reusable reports whether a job may go on holding set: nobody took any of it, and all of it may be used.
func (p *Pipeline) reusable(v *sched.View, set []sched.GPUID) bool {
	for _, g := range set {
		if !v.Usable(g) {
			return false
		}
	}
	return p.ledger.Untaken(set)
}
