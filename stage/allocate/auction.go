package allocate

import (
	"slices"

	"github.com/trainyard/trainyard/model/price/step"
	"github.com/trainyard/trainyard/sched"
)

// auction serves the bidders for GPUs of a type by falling price of their next steps. It starts from what they hold: a
// step takes free GPUs, then those of steps that are worth less, if that pays for the restarts; see stops.go. Whoever
// is served is placed on a ledger of its own, so that no grant is given that has no place.
type auction struct {
	v       *sched.View
	c       *Constants
	place   sched.Placer
	market  step.Market
	price   float64 // of a GPU
	free    int     // GPUs
	first   int     // bidder for whom GPUs are kept; -1 = none is
	kept    bool    // it was not served: none takes GPUs that may not be stopped
	bidders []*bidder
	queue   []ask
	mirror  mirror
	ledger  *sched.Ledger
	mark    int  // of the ledger, before anything was decided
	fresh   bool // the ledger is that of the view, and what was decided since
	givers  []giver
	sorted  bool // givers are there
	chosen  []int
	nodes   nodeSums
	curve   step.Curve
	steps   []step.Step
	repairs repairs
	gain    float64 // of the stops that were weighed last, in job-seconds
	loss    float64
	gave    map[sched.JobID]surrender // to whom jobs that are not done last gave GPUs up; for people alone
}

// ask is the next step of a bidder.
type ask struct {
	step.Step
	by int
}

func (x *auction) begin(v *sched.View, c *Constants, place sched.Placer, m step.Market) {
	x.v, x.c, x.place, x.market = v, c, place, m
	x.first, x.kept, x.fresh, x.sorted = -1, false, false, false
	x.bidders, x.queue, x.givers = x.bidders[:0], x.queue[:0], x.givers[:0]
}

func (x *auction) add(b *bidder, m *jobMemory) {
	b.at = len(x.bidders)
	x.bidders = append(x.bidders, b)
	if x.first < 0 && m.kept > 0 && b.width == 0 {
		x.first = b.at
	}
	if b.width == b.most() {
		return
	}
	if s, ok := x.curveOf(b).Next(b.width, len(b.speed)); ok {
		x.queue = append(x.queue, ask{s, len(x.bidders) - 1})
	}
}

// priced returns a bidder as the mathematics see it.
func (x *auction) priced(b *bidder) step.Job {
	job := &x.v.Jobs[b.claim.ID]
	return step.Job{Speed: b.speed, Work: b.least, Restart: b.restart, Held: b.claim.Held,
		Weight: weightOf(x.c, x.v.Now, job, x.market.Horizon, b.ends(job))}
}

// curveOf returns the curve of a bidder, which is made where clearing did not need it.
func (x *auction) curveOf(b *bidder) *step.Curve {
	if b.curve == nil {
		job := x.priced(b)
		b.own.Set(&job, x.market)
		b.curve = &b.own
	}
	return b.curve
}

// run serves all asks, notes who starves, and moves jobs to better places.
func (x *auction) run(memory []jobMemory, slowdown Slowdown) {
	defer x.leave()
	for i := len(x.queue)/2 - 1; i >= 0; i-- {
		x.sink(i)
	}
	for len(x.queue) > 0 {
		top := x.queue[0]
		if top.Price < x.market.Floor && top.by != x.first {
			break // it is worth less than what is paid for it
		}
		b := x.bidders[top.by]
		if top.From != b.width {
			x.again(b, len(b.speed)) // it was made narrower
			continue
		}
		if x.serve(b, top) {
			memory[b.claim.ID].starved, memory[b.claim.ID].kept = 0, 0
			x.again(b, len(b.speed))
			continue
		}
		most := b.width + max(x.free, 0)
		if x.bars(b) {
			most = b.width
		}
		if !x.again(b, min(most, top.To-1)) && b.width == 0 {
			x.starve(&memory[b.claim.ID], top.Price)
		}
	}
	x.repair(slowdown)
}

// bars reports whether a bidder may take no free GPUs, which are kept: it could not be stopped again.
func (x *auction) bars(b *bidder) bool { return x.kept && b.stays }

// starve notes that a job finds no room though it is worth the price. After an hour GPUs are kept for it, one job at a
// time, for a day at most.
func (x *auction) starve(m *jobMemory, price float64) {
	now := max(x.v.Now, 1)
	switch {
	case m.kept > 0 && now.Sub(m.kept) >= x.c.KeepFor:
		m.starved, m.kept = now, 0
	case m.kept > 0:
		x.kept = true
	case price < x.price:
	case m.starved == 0:
		m.starved = now
	case now.Sub(m.starved) >= x.c.KeepAfter && x.first < 0 && !x.kept:
		m.kept, x.kept = now, true
	}
}

// again puts the next step of the first bidder, up to most GPUs, into the queue instead of its last, and reports
// whether there is one.
func (x *auction) again(b *bidder, most int) bool {
	at := &x.queue[0]
	if s, ok := x.curveOf(b).Next(b.width, most); ok && !b.stopped {
		s.Price = min(s.Price, at.Price) // rounding must not turn two steps round
		at.Step = s
		x.sink(0)
		return true
	}
	last := len(x.queue) - 1
	x.queue[0] = x.queue[last]
	x.queue = x.queue[:last]
	x.sink(0)
	return false
}

// serve gives a step what it asks for if that is free, or others give it up.
func (x *auction) serve(b *bidder, s ask) bool {
	need := s.To - s.From
	if need <= x.free && !x.bars(b) && x.settle(b, s.To, nil) {
		x.free -= need
		return true
	}
	return x.stopFor(b, s)
}

// settle finds places for a bidder at a width, and for those of the givers chosen that are made narrower for it, and
// reports whether there are. If not, all is as before.
func (x *auction) settle(b *bidder, to int, chosen []int) bool {
	l := x.scratch()
	mark := l.Mark()
	x.release(b)
	for _, i := range chosen {
		x.release(x.bidders[x.givers[i].by])
	}
	if !x.settleOne(b, to) {
		l.Undo(mark)
		return false
	}
	return true
}

// settleOne books GPUs for a bidder, if there is a place.
func (x *auction) settleOne(b *bidder, to int) bool {
	id, l := b.claim.ID, x.ledger
	if !x.place.Fits(x.v, l, id, to) {
		return false
	}
	gpus, ok := x.place.Place(x.v, l, id, to, nil)
	if !ok {
		return false
	}
	slices.Sort(gpus)
	l.Book(id, gpus)
	b.width, b.moved = to, true
	b.set = gpus
	return true
}

func (x *auction) release(b *bidder) {
	if len(x.ledger.Set(b.claim.ID)) > 0 {
		x.ledger.Release(b.claim.ID)
	}
}

// scratch returns the ledger with what was decided so far.
func (x *auction) scratch() *sched.Ledger {
	if !x.fresh {
		x.ledger, x.mark = x.mirror.of(x.v)
		x.fresh = true
		for _, b := range x.bidders {
			if b.width == 0 {
				x.release(b)
			}
		}
	}
	return x.ledger
}

// leave takes back what was decided on the ledger.
func (x *auction) leave() {
	if x.fresh {
		x.mirror.undo(x.mark)
	}
}

// before orders asks: that of the bidder for whom GPUs are kept, then the highest price first, ties by rank.
func (x *auction) before(s, o *ask) bool {
	if s.by == x.first || o.by == x.first {
		return s.by == x.first && o.by != x.first
	}
	if s.Price != o.Price {
		return s.Price > o.Price
	}
	return s.by < o.by
}

// sink moves the ask at i down to its place in the heap.
func (x *auction) sink(i int) {
	for q := x.queue; ; {
		first := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < len(q) && x.before(&q[c], &q[first]) {
				first = c
			}
		}
		if first == i {
			return
		}
		q[i], q[first] = q[first], q[i]
		i = first
	}
}
