package allocate

import (
	"slices"

	"github.com/trainyard/trainyard/model/price/step"
	"github.com/trainyard/trainyard/sched"
)

// Sizes says how much work jobs have left.
type Sizes interface {
	// Left returns the effective work that job j has left, which is right for its place in an order, and the expected
	// work, in seconds on the GPUs that it asked for, alone. Both are > 0.
	Left(v *sched.View, j sched.JobID) (effective, expected float64)
}

// Clear gives each GPU to the step of a job's width to which it is worth most, at one price that clears the GPUs of a
// type; see model/price/step. A job that runs is stopped or made narrower for another only where the gain pays for its
// restart, and no job gives anything up at an instant at which its width has changed: changes come to an end. Rigid
// jobs are a step each.
//
// Who holds GPUs stays on their type. A newcomer bids for the acceptable type with most left beyond the fewest GPUs of
// those before it, the first of several.
//
// A job that has waited for an hour since it was worth the price first, and is, has GPUs kept for it. It comes before
// all others, whoever may be stopped gives way to it, and who may not be stopped takes no free GPUs until it has
// started, or a day has gone by. It is one job at a time for each type.
//
// Jobs that share GPUs with others stay where they are, as wide as they are, and their GPUs are not divided.
//
// Where GPUs are rented, each job has the width that is best at their price as long as more are to be had. Else that
// price is the least that a GPU has.
//
// Source: ours; docs/papers/combined.md.
type Clear struct {
	Constants Constants
	Rates     *Rates
	Sizes     Sizes
	Place     sched.Placer // by which jobs are placed afterwards
	Slowdown  Slowdown     // nil = no job is moved to better GPUs
	Renting   Renting      // nil = there are no more GPUs than there are
	Explored  *Explored    // widths that were tried; nil = the speed at all widths is known
	Shares    bool         // jobs may share GPUs: see package share

	// What it remembers.
	backlog backlog
	memory  []jobMemory // by job
	said    said

	// What follows from the View, for one division.
	bidders  []bidder
	by       [][]int // by type: indices into bidders, in order of rank
	free     []int   // by type: GPUs left beyond the fewest of all
	most     []int   // by type: GPUs there can ever be
	typeOf   types
	auction  auction
	prices   []float64 // by type, of the last division; for people alone
	horizon  float64
	clearing step.Clearing
	jobs     []step.Job
	alone    []sched.JobID // those who take part
}

// jobMemory is what is remembered of a job.
type jobMemory struct {
	reference float64    // effective work that counts while it runs, in seconds; 0 = none
	starved   sched.Time // since when it waits although it was worth the price; 0 = it does not
	kept      sched.Time // since when GPUs are kept for it; 0 = they are not
	changed   sched.Time // 1 + when its width changed last; 0 = it never did
}

var (
	_ sched.Allocator = (*Clear)(nil)
	_ sched.Narrowest = (*Clear)(nil)
	_ sched.Observer  = (*Clear)(nil)
	_ sched.Reviser   = (*Clear)(nil)
)

// Observe learns how much work arrives.
func (a *Clear) Observe(v *sched.View, e *sched.Event) {
	a.auction.mirror.observe(v, e)
	if e.Kind == sched.JobArrived {
		_, m := a.Sizes.Left(v, e.Job)
		a.backlog.note(&a.Constants, v.Now, float64(m*float64(v.Jobs[e.Job].Spec.GPUs.Want)))
	}
	if e.Kind == sched.AttemptEnded && v.Jobs[e.Job].State == sched.Done && int(e.Job) < len(a.memory) {
		a.memory[e.Job] = jobMemory{}
		delete(a.auction.gave, e.Job)
	}
}

// Allocate appends the grants: those who keep what they hold or give some of it up, then the others, both in the order
// of ranks.
func (a *Clear) Allocate(v *sched.View, room []int32, order []sched.JobID, d *sched.Desired,
	dst []sched.Grant) []sched.Grant {
	if a.Renting != nil && !a.Renting.Short(v) {
		return a.rented(v, room, order, d, dst)
	}
	gpus, left := 0, 0.0
	if a.Shares {
		order, dst, gpus, left = a.leave(v, room, order, dst)
	}
	a.enter(v, room, order)
	for i := range a.bidders {
		left += a.bidders[i].cheapest()
	}
	for _, n := range room {
		gpus += max(int(n), 0)
	}
	a.horizon = a.backlog.horizon(&a.Constants, v.Now, left, gpus)
	a.prices = a.prices[:0]
	for t := range room {
		dst = a.divide(v, sched.TypeID(t), int(room[t]), d, dst)
	}
	return dst
}

// enter has jobs bid on a type: those who hold GPUs first, so that newcomers see what is left.
func (a *Clear) enter(v *sched.View, room []int32, order []sched.JobID) {
	a.free = a.free[:0]
	for len(a.by) < len(room) {
		a.by = append(a.by, nil)
	}
	a.by, a.most = a.by[:len(room)], mostOf(v, len(room), a.most[:0])
	for t := range room {
		a.free, a.by[t] = append(a.free, int(room[t])), a.by[t][:0]
	}
	a.bidders = slices.Grow(a.bidders[:0], len(order))
	for _, holds := range [2]bool{true, false} {
		for _, j := range order {
			if job := &v.Jobs[j]; len(job.Target) > 0 == holds {
				a.bid(v, j, job)
			}
		}
	}
}

// bid has job j bid.
func (a *Clear) bid(v *sched.View, j sched.JobID, job *sched.Job) {
	n := len(a.bidders)
	a.bidders = a.bidders[:n+1]
	b := &a.bidders[n]
	if !a.bidder(v, j, b) {
		a.bidders = a.bidders[:n]
		return
	}
	var t int
	takes := len(job.Target)
	if takes > 0 {
		t = int(typeOf(v, job))
	} else {
		takes, _ = b.claim.Least()
		t = a.roomiest(job.Spec.Types, takes)
	}
	if t < 0 {
		a.bidders = a.bidders[:n]
		return
	}
	a.free[t] -= takes
	a.by[t] = append(a.by[t], n)
}

// roomiest returns the acceptable type with most left of those that can ever have so many GPUs, the first of several,
// -1 if there is none.
func (a *Clear) roomiest(types sched.TypeSet, least int) int {
	best := -1
	for t, free := range a.free {
		if types.Has(sched.TypeID(t)) && a.most[t] >= least && (best < 0 || free > a.free[best]) {
			best = t
		}
	}
	return best
}

// divide divides the GPUs of a type.
func (a *Clear) divide(v *sched.View, t sched.TypeID, room int, d *sched.Desired, dst []sched.Grant) []sched.Grant {
	x := &a.auction
	x.begin(v, &a.Constants, a.Place, a.market())
	held := 0
	for _, i := range a.by[t] {
		b := &a.bidders[i]
		a.typeOf.set(b.claim.ID, t)
		held += b.width
	}
	x.free = room - held
	a.clear(a.by[t], max(room, 0))
	a.prices = append(a.prices, x.price)
	for _, i := range a.by[t] {
		b := &a.bidders[i]
		x.add(b, &a.memory[b.claim.ID])
	}
	x.run(a.memory, a.Slowdown)
	for _, b := range x.bidders {
		if b.again || b.width != b.claim.Held {
			a.memory[b.claim.ID].changed = v.Now + 1
		}
	}
	return a.granted(v, x, d, dst)
}

// clear finds the price of a GPU where so many are to be divided among bidders. Where all can have what they want it is
// the floor, and few curves are needed.
func (a *Clear) clear(bidders []int, room int) {
	x := &a.auction
	wanted := 0
	for _, i := range bidders {
		wanted += a.bidders[i].most()
	}
	if x.price = x.market.Floor; wanted <= room {
		return
	}
	a.jobs = a.jobs[:0]
	for _, i := range bidders {
		a.jobs = append(a.jobs, x.priced(&a.bidders[i]))
	}
	x.price = a.clearing.Clear(x.market, a.jobs, room).Price
	for n, i := range bidders {
		a.bidders[i].curve = a.clearing.Curve(n)
	}
}

// granted appends what an auction gave.
func (a *Clear) granted(v *sched.View, x *auction, d *sched.Desired, dst []sched.Grant) []sched.Grant {
	for _, wider := range [2]bool{false, true} {
		for _, b := range x.bidders {
			if b.width == 0 {
				a.typeOf.unset(b.claim.ID) // another time it may bid elsewhere
			}
			if b.width == 0 || b.width > b.claim.Held != wider {
				continue
			}
			a.Rates.watch(v, &b.claim, d)
			g := a.Rates.grant(v, &b.claim, b.width)
			if a.Shares {
				g.Config.Share = v.Jobs[b.claim.ID].Share
			}
			if b.moved {
				g.Set, g.Again = b.set, b.again
			}
			dst = append(dst, g)
		}
	}
	return dst
}

// TypeOf returns the type on which job j was granted GPUs, or bids; false if on none.
func (a *Clear) TypeOf(j sched.JobID) (sched.TypeID, bool) { return a.typeOf.of(j) }

// Least returns the fewest GPUs that a job may be given, and whether its speed by width is known.
func (a *Clear) Least(v *sched.View, j sched.JobID) (gpus int32, known bool) {
	return a.Rates.fewest(v, j)
}

// Holds reports false: no job waits for another to be admitted.
func (*Clear) Holds(*sched.View, sched.JobID) bool { return false }
