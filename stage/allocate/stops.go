package allocate

import (
	"cmp"
	"slices"

	"github.com/trainyard/trainyard/model/price/step"
	"github.com/trainyard/trainyard/sched"
)

// giver is a step of what a bidder holds, which it may give up. Its price is without the restart of what it gives up,
// which is weighed apart. To be wider costs one: else a job whose speed grows faster than its width gives up the first
// GPUs, as it were to do the same work on more of them later, for free.
type giver struct {
	step.Step
	by int
}

// stopFor has others give up what a step lacks, those worth least first, if what is gained pays for what their
// restarts cost: with t the time until the bidder ends, at most the horizon,
//
//	sum of (nu - nu_j) dk_j t  >  sum over those stopped or resized, once each, of lambda k_j R_j + v_j U_j
//
// where U is work that is lost. It reports whether the step was served.
func (x *auction) stopFor(b *bidder, s ask) bool {
	x.gather()
	if len(x.givers) == 0 || x.dear(&x.givers[0], &s) {
		return false
	}
	need := sched.NodeNeed{}
	if n, ok := x.place.(sched.NodeBound); ok {
		need = n.Need(x.v, x.scratch(), b.claim.ID, s.To)
	}
	var found bool
	if need.One || need.Whole > 0 {
		found = !x.bars(b) && x.chooseOnNodes(b, s, need)
	} else {
		found = x.choose(b, s)
	}
	if !found || !x.pays(b, s) || !x.settle(b, s.To, x.chosen) {
		return false
	}
	x.giveUp(s)
	return true
}

// gather lists what bidders hold, the cheapest first.
func (x *auction) gather() {
	if x.sorted {
		return
	}
	x.sorted = true
	for i, b := range x.bidders {
		if b.width > 0 && !b.moved && !b.settled {
			x.gatherOf(i, b)
		}
	}
	slices.SortFunc(x.givers, func(a, o giver) int {
		return cmp.Or(cmp.Compare(a.Price, o.Price), cmp.Compare(o.by, a.by), cmp.Compare(o.From, a.From))
	})
}

func (x *auction) gatherOf(i int, b *bidder) {
	held := b.claim.Held
	job := x.priced(b)
	job.Shrinks = true
	x.curve.Set(&job, x.market)
	x.steps = x.curve.Steps(x.steps[:0], 0, held)
	top := 0
	for _, s := range x.steps {
		x.givers = append(x.givers, giver{s, i})
		top = s.To
	}
	if top < held { // further GPUs make it no faster
		x.givers = append(x.givers, giver{step.Step{From: top, To: held}, i})
	}
}

// gives reports whether a giver can give its step up for bidder by.
func (x *auction) gives(g *giver, by int) bool {
	b := x.bidders[g.by]
	return g.by != by && g.From < b.width && (!b.moved || b.stopped)
}

// dear reports whether a giver's step is worth about as much as one that lacks GPUs, or more. Nothing is too dear for
// the bidder for whom GPUs are kept.
func (x *auction) dear(g *giver, s *ask) bool {
	return s.by != x.first && !(float64(g.Price*x.c.Above) < s.Price)
}

// choose chooses the cheapest givers of what a step lacks.
func (x *auction) choose(b *bidder, s ask) bool {
	lack := s.To - s.From - max(x.free, 0)
	if x.bars(b) {
		lack = s.To - s.From
	}
	x.chosen = x.chosen[:0]
	for i := range x.givers {
		if lack <= 0 || x.dear(&x.givers[i], &s) {
			break
		}
		if x.gives(&x.givers[i], s.by) {
			x.chosen = append(x.chosen, i)
			lack -= x.share(&x.givers[i])
		}
	}
	if lack > 0 || len(x.chosen) == 0 {
		return false
	}
	x.reprieve(-lack, x.share)
	return true
}

// share is how many GPUs a giver gives up.
func (x *auction) share(g *giver) int { return min(g.To, x.bidders[g.by].width) - g.From }

// reprieve drops those chosen that are not needed, the dearest first, where so many GPUs are too many.
func (x *auction) reprieve(spare int, gain func(*giver) int) {
	for n := len(x.chosen) - 1; n >= 0; n-- {
		g := &x.givers[x.chosen[n]]
		deepest := !slices.ContainsFunc(x.chosen[n+1:], func(i int) bool { return x.givers[i].by == g.by })
		if k := gain(g); k <= spare && deepest {
			spare -= k
			x.chosen = slices.Delete(x.chosen, n, n+1)
		}
	}
}

// pays reports whether what a step gains is more than what those chosen lose.
func (x *auction) pays(b *bidder, s ask) bool {
	span := x.curveOf(b).Ends(s.To)
	if x.market.Horizon > 0 {
		span = min(span, x.market.Horizon)
	}
	x.gain, x.loss = 0, 0
	for n, i := range x.chosen {
		g := &x.givers[i]
		from := x.bidders[g.by]
		x.gain += float64(float64((s.Price-g.Price)*float64(x.share(g))) * span)
		last := !slices.ContainsFunc(x.chosen[n+1:], func(i int) bool { return x.givers[i].by == g.by })
		if from.stopped || !last {
			continue
		}
		k := g.From
		if k == 0 {
			k = from.claim.Held
		}
		x.loss += float64(float64(x.price*float64(k)) * from.restart)
		if u := from.unsaved(x.v); u > 0 {
			x.loss += float64(x.curveOf(from).Worth(x.price) * u)
		}
	}
	return x.gain > x.loss || s.by == x.first
}

// giveUp takes from those chosen what they give up, and finds new places for those that go on.
func (x *auction) giveUp(s ask) {
	x.free -= s.To - s.From
	narrower := x.chosen[:0]
	for _, i := range x.chosen {
		g := &x.givers[i]
		from := x.bidders[g.by]
		x.free += x.share(g)
		if !slices.Contains(narrower, g.by) {
			narrower = append(narrower, g.by)
		}
		x.note(from.claim.ID, x.bidders[s.by].claim.ID)
		from.width, from.moved, from.stopped = g.From, true, true
	}
	for _, i := range narrower {
		if from := x.bidders[i]; from.width > 0 && !x.settleOne(from, from.width) {
			x.free += from.width
			from.width = 0
		}
	}
}

// note notes to whom a job gives GPUs up.
func (x *auction) note(from, to sched.JobID) {
	if x.gave == nil {
		x.gave = make(map[sched.JobID]surrender)
	}
	x.gave[from] = surrender{to, x.gain, x.loss}
}

// nodeSums is what could be had on nodes.
type nodeSums struct {
	have  []int // by node: free, or given up
	ready []sched.NodeID
}

// chooseOnNodes chooses givers for a gang that is bound to nodes: those on the nodes that are free first as ever more
// of the cheapest give up what they hold.
func (x *auction) chooseOnNodes(b *bidder, s ask, need sched.NodeNeed) bool {
	size, count := need.Size, need.Whole
	if need.One {
		size, count = s.To, 1
	}
	x.startSums(b, need.Type, size)
	for i := -1; i < len(x.givers) && len(x.nodes.ready) < count; i++ {
		if i >= 0 && !x.offer(&x.givers[i], s, size) {
			break
		}
	}
	return len(x.nodes.ready) >= count && x.chooseReady(s, count, size)
}

// chooseReady chooses the cheapest givers on the first so many nodes that are ready, until each has its size.
func (x *auction) chooseReady(s ask, count, size int) bool {
	x.chosen = x.chosen[:0]
	spare := 0
	for i := range x.givers {
		if x.dear(&x.givers[i], &s) || len(x.chosen) > 0 && spare >= 0 {
			break
		}
		if n := x.onReady(&x.givers[i], count); n > 0 && x.gives(&x.givers[i], s.by) {
			x.chosen = append(x.chosen, i)
			spare = x.spareOn(count, size)
		}
	}
	if len(x.chosen) == 0 {
		return false
	}
	if spare > 0 && count == 1 {
		x.reprieve(spare, func(g *giver) int { return x.onReady(g, count) })
	}
	return len(x.chosen) > 0
}

// startSums counts what is free on the nodes of a type, what the bidder itself holds included.
func (x *auction) startSums(b *bidder, t sched.TypeID, size int) {
	sums, l := &x.nodes, x.scratch()
	sums.have, sums.ready = sums.have[:0], sums.ready[:0]
	for n := range x.v.Nodes {
		free := -1 // not to be used
		if x.v.Nodes[n].Spec.Type == t && l.UsableOn(sched.NodeID(n)) >= size {
			free = l.FreeOn(sched.NodeID(n))
		}
		sums.have = append(sums.have, free)
	}
	for _, g := range l.Set(b.claim.ID) {
		if n := l.NodeOf(g); sums.have[n] >= 0 {
			sums.have[n]++
		}
	}
	for n, free := range sums.have {
		if free >= size {
			sums.ready = append(sums.ready, sched.NodeID(n))
		}
	}
}

// offer adds what a giver holds to its nodes; false if it is too dear.
func (x *auction) offer(g *giver, s ask, size int) bool {
	if x.dear(g, &s) {
		return false
	}
	if !x.gives(g, s.by) {
		return true
	}
	left, l := x.share(g), x.ledger
	for _, gpu := range l.Set(x.bidders[g.by].claim.ID) {
		n := l.NodeOf(gpu)
		if left == 0 || x.nodes.have[n] < 0 {
			continue
		}
		left--
		if x.nodes.have[n]++; x.nodes.have[n] == size {
			x.nodes.ready = append(x.nodes.ready, n)
		}
	}
	return true
}

// onReady counts the GPUs that a giver gives up on the first so many nodes that are ready.
func (x *auction) onReady(g *giver, count int) (n int) {
	for _, gpu := range x.ledger.Set(x.bidders[g.by].claim.ID) {
		if slices.Contains(x.nodes.ready[:count], x.ledger.NodeOf(gpu)) {
			n++
		}
	}
	return min(n, x.share(g))
}

// spareOn returns how many GPUs the chosen and the free ones are beyond those wanted on the first so many nodes that
// are ready; negative if they are too few.
func (x *auction) spareOn(count, size int) int {
	have := 0
	for _, n := range x.nodes.ready[:count] {
		have += x.ledger.FreeOn(n)
	}
	for _, i := range x.chosen {
		have += x.onReady(&x.givers[i], count)
	}
	return have - count*size
}
