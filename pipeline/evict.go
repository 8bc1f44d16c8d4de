package pipeline

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// evictFor releases lower-ranked holders, worst first, until job id fits. If it never does, all is as before.
func (p *Pipeline) evictFor(v *sched.View, id sched.JobID, n int, now float64) bool {
	fits := p.evictUntilFits(v, id, n, now)
	if !fits && p.guards() {
		p.noteProtected(v, id, now)
	}
	return fits
}

// noteProtected asks for another walk when the first lower-ranked holder that was spared may be evicted.
func (p *Pipeline) noteProtected(v *sched.View, id sched.JobID, now float64) {
	for _, h := range p.ledger.Holders() {
		if until := p.protectedUntil(v, h); until > v.Now && p.jobs[h].in == holding && beforeAt(&p.jobs[id], &p.jobs[h], id, h, now) {
			p.retry = min(p.retry, until)
		}
	}
}

func (p *Pipeline) evictUntilFits(v *sched.View, id sched.JobID, n int, now float64) bool {
	if p.bound != nil && !p.whole() {
		switch need := p.bound.Need(v, p.ledger, id, n); {
		case need.One:
			return p.evictOnNode(v, id, n, need.Type, now)
		case need.Whole > p.clearable(v, id, need, now):
			return false
		case need.Whole > 0 && need.Whole*need.Size == n:
			p.evictOnNodes(v, need.Whole, now)
			return true
		}
	}
	if !p.whole() && !p.mayYield(v, id, n, now) {
		return false
	}
	p.protected = p.protected[:0]
	p.cursor = len(p.list) - 1
	fits := false
	for !fits {
		victim := p.nextVictim(id, now)
		if victim == sched.None {
			break
		}
		if p.isProtected(v, victim) {
			p.protected = append(p.protected, victim)
			continue
		}
		p.evict(victim)
		fits = p.s.Place.Fits(v, p.ledger, id, n)
	}
	if !fits {
		p.reprieveAll()
	}
	if !p.whole() {
		for _, id := range p.protected {
			p.groups.add(p.jobs, id)
		}
	}
	return fits
}

// guards reports whether any holder may be protected.
func (p *Pipeline) guards() bool { return p.s.MinRun > 0 || p.s.Guard != nil }

// isProtected reports whether victim has not run for MinRun yet, or is guarded.
func (p *Pipeline) isProtected(v *sched.View, victim sched.JobID) bool {
	return p.guards() && v.Now < p.protectedUntil(v, victim)
}

// protectedUntil returns when victim will have run for MinRun, at the earliest, and as long as it is guarded.
func (p *Pipeline) protectedUntil(v *sched.View, victim sched.JobID) sched.Time {
	started := v.Now
	switch j := &v.Jobs[victim]; j.Attempt {
	case sched.Starting:
	case sched.Running:
		started = j.LastStart
	default:
		return 0
	}
	until := started.Add(p.s.MinRun)
	if p.s.Guard != nil {
		until = max(until, p.s.Guard.Until(v, victim, started))
	}
	return until
}

// nextVictim takes the worst holder ranked below job id out of the indices, or returns None.
func (p *Pipeline) nextVictim(id sched.JobID, now float64) sched.JobID {
	if p.whole() {
		return p.nextInList(id)
	}
	w := p.worstHolder(now)
	if w == sched.None || !beforeAt(&p.jobs[id], &p.jobs[w], id, w, now) {
		return sched.None
	}
	p.groups.remove(p.jobs, w)
	return w
}

// reprieve gives a victim back exactly what it held.
func (p *Pipeline) reprieve(victim sched.JobID, set []sched.GPUID) {
	p.ledger.Book(victim, set)
	p.user[p.jobs[victim].user] += int32(len(set))
	if !p.whole() {
		p.groups.add(p.jobs, victim)
	}
}

// reprieveAll gives all victims back what they held: the job they were evicted for does not take anything.
func (p *Pipeline) reprieveAll() {
	for i, victim := range p.popped {
		p.reprieve(victim, p.poppedSets[i])
	}
	p.popped, p.poppedSets = p.popped[:0], p.poppedSets[:0]
}

// settleVictims reprieves the victims whose GPUs are still free after job id took its own; the others join the waiting
// jobs of this walk at the rank they held.
func (p *Pipeline) settleVictims(id sched.JobID, now float64) {
	for i := len(p.popped) - 1; i >= 0; i-- {
		victim, set := p.popped[i], p.poppedSets[i]
		if p.ledger.Untaken(set) {
			p.reprieve(victim, set)
			continue
		}
		p.given.note(p.ledger, set)
		p.dirty = p.dirty || p.s.UserLimit > 0 // a job of its user was passed over, maybe: walk again
		for _, h := range p.hopeless {         // what the victim leaves over may do for a lower-ranked job
			p.addHeadBehind(id, h, now)
		}
		p.hopeless = p.hopeless[:0]
		p.touch(victim)
		p.sets.Recycle(set)
		x := &p.jobs[victim]
		x.in = waiting
		p.waits++
		if x.key.Slope != 0 {
			x.key.Value, x.key.Slope = valueAt(&x.key, now), 0
		}
		if !p.whole() {
			p.groups.add(p.jobs, victim)
			p.addHeadBehind(id, x.group, now)
		}
	}
	p.popped, p.poppedSets = p.popped[:0], p.poppedSets[:0]
}

// evict releases what victim has booked and notes it among the popped.
func (p *Pipeline) evict(victim sched.JobID) {
	set := p.ledger.Release(victim)
	p.user[p.jobs[victim].user] -= int32(len(set))
	p.popped = append(p.popped, victim)
	p.poppedSets = append(p.poppedSets, set)
}

// evictOnNode is evictFor for a gang that fits iff one node has n free GPUs. Evicting holders from the worst on, the
// first node to have them is one of those of the last victim; that victim is found node by node, and only what is worse
// than it on its own nodes needs to go.
func (p *Pipeline) evictOnNode(v *sched.View, id sched.JobID, n int, t sched.TypeID, now float64) bool {
	last := p.lastVictimOf(v, id, n, t, now)
	if last == sched.None {
		return false
	}
	p.tenants = append(p.tenants[:0], last)
	for _, g := range p.ledger.Set(last) {
		first := v.Nodes[v.GPUs[g].Node].First
		for h := first; h < first+sched.GPUID(v.Nodes[v.GPUs[g].Node].Spec.GPUs); h++ {
			if o := p.ledger.Owner(h); o != sched.None && p.evictable(v, o, last, now) && !slices.Contains(p.tenants, o) {
				p.tenants = append(p.tenants, o)
			}
		}
	}
	p.evictTenants(now)
	return true
}

// evictTenants evicts p.tenants, worst first.
func (p *Pipeline) evictTenants(now float64) {
	slices.SortFunc(p.tenants, func(a, b sched.JobID) int {
		if beforeAt(&p.jobs[b], &p.jobs[a], b, a, now) {
			return -1
		}
		return 1
	})
	for _, w := range p.tenants {
		p.groups.remove(p.jobs, w)
		p.evict(w)
	}
}

// evictOnNodes is evictFor for a gang that fits iff so many nodes are wholly free, when as many of p.clear can be. A node
// is free once its best holder goes; evicting from the worst on, the last victim is one of these.
func (p *Pipeline) evictOnNodes(v *sched.View, nodes int, now float64) {
	p.tenants, p.tenantGPUs = p.tenants[:0], p.tenantGPUs[:0]
	for _, node := range p.clear {
		if best := p.bestOn(v, node, now); best != sched.None {
			p.tenants, p.tenantGPUs = append(p.tenants, best), append(p.tenantGPUs, 1)
		} else {
			nodes--
		}
	}
	last := p.nthWorst(nodes, now)
	p.tenants = p.tenants[:0]
	for _, node := range p.clear {
		if best := p.bestOn(v, node, now); best == sched.None || beforeAt(&p.jobs[best], &p.jobs[last], best, last, now) {
			continue
		}
		first := v.Nodes[node].First
		for g := first; g < first+sched.GPUID(v.Nodes[node].Spec.GPUs); g++ {
			if o := p.ledger.Owner(g); o != sched.None && p.ledger.IsUsable(g) && !slices.Contains(p.tenants, o) {
				p.tenants = append(p.tenants, o)
			}
		}
	}
	p.evictTenants(now)
}

// bestOn returns the holder on a node that ranks first, or None.
func (p *Pipeline) bestOn(v *sched.View, node sched.NodeID, now float64) sched.JobID {
	best, first := sched.JobID(sched.None), v.Nodes[node].First
	for g := first; g < first+sched.GPUID(v.Nodes[node].Spec.GPUs); g++ {
		if o := p.ledger.Owner(g); o != sched.None && o != best && p.ledger.IsUsable(g) &&
			(best == sched.None || beforeAt(&p.jobs[o], &p.jobs[best], o, best, now)) {
			best = o
		}
	}
	return best
}

// lastVictimOf looks at the nodes that may have become able to hold job id since it last did not fit, or at all nodes.
func (p *Pipeline) lastVictimOf(v *sched.View, id sched.JobID, n int, t sched.TypeID, now float64) sched.JobID {
	last := sched.JobID(sched.None)
	look := func(node sched.NodeID) {
		if w := p.lastVictim(v, node, id, last, n, now); w != sched.None {
			last = w
		}
	}
	if nodes, f := p.sinceFailure(v, id); f != nil {
		for _, node := range nodes {
			look(node)
		}
		return last
	}
	if !p.mayYield(v, id, n, now) {
		return last
	}
	for node := p.ledger.NextUp(t, 0); node != sched.None; node = p.ledger.NextUp(t, node+1) {
		look(node)
	}
	return last
}

// lastVictim returns the holder whose eviction, after that of all worse ones, gives job id its n GPUs on the node; None if
// that takes a holder which is not worse than both id and the best found so far on other nodes.
func (p *Pipeline) lastVictim(v *sched.View, node sched.NodeID, id, best sched.JobID, n int, now float64) sched.JobID {
	usable, free := p.ledger.UsableOn(node), p.ledger.FreeOn(node)
	if usable < n {
		return sched.None
	}
	if best == sched.None {
		best = id
	}
	spare := usable - n // GPUs that may stay with holders that are not evicted
	p.tenants = p.tenants[:0]
	p.tenantGPUs = p.tenantGPUs[:0]
	first := v.Nodes[node].First
	for g := first; g < first+sched.GPUID(v.Nodes[node].Spec.GPUs); g++ {
		if p.ledger.IsFree(g) || !p.ledger.IsUsable(g) {
			continue
		}
		o := p.ledger.Owner(g)
		if k := len(p.tenants) - 1; k >= 0 && p.tenants[k] == o {
			p.tenantGPUs[k]++
			continue
		}
		if o == sched.None || !p.evictable(v, o, best, now) {
			if spare--; spare < 0 {
				return sched.None
			}
			continue
		}
		p.tenants = append(p.tenants, o)
		p.tenantGPUs = append(p.tenantGPUs, 1)
	}
	return p.nthWorst(n-free, now)
}

// nthWorst returns the tenant that gives up GPU number n when p.tenants leave the node from the worst on.
func (p *Pipeline) nthWorst(n int, now float64) sched.JobID {
	for i := range p.tenants { // few: a selection sort that stops early
		w := i
		for k := i + 1; k < len(p.tenants); k++ {
			if a, b := p.tenants[w], p.tenants[k]; a != b && beforeAt(&p.jobs[a], &p.jobs[b], a, b, now) {
				w = k
			}
		}
		p.tenants[i], p.tenants[w] = p.tenants[w], p.tenants[i]
		p.tenantGPUs[i], p.tenantGPUs[w] = p.tenantGPUs[w], p.tenantGPUs[i]
		if n -= p.tenantGPUs[i]; n <= 0 {
			return p.tenants[i]
		}
	}
	return sched.None
}

// evictable reports whether holder o ranks below job than and is not protected.
func (p *Pipeline) evictable(v *sched.View, o, than sched.JobID, now float64) bool {
	return p.jobs[o].group != sched.None && p.jobs[o].in == holding &&
		beforeAt(&p.jobs[than], &p.jobs[o], than, o, now) && !p.isProtected(v, o)
}

// clearable returns how many nodes of need could be wholly freed for job id.
func (p *Pipeline) clearable(v *sched.View, id sched.JobID, need sched.NodeNeed, now float64) int {
	if need.Whole == 0 {
		return 0
	}
	look := func(node sched.NodeID) {
		if p.ledger.UsableOn(node) == need.Size && p.clears(v, id, node, now) && !slices.Contains(p.clear, node) {
			p.clear = append(p.clear, node)
		}
	}
	if nodes, f := p.sinceFailure(v, id); f != nil && f.cleared {
		for _, node := range f.nodes {
			look(node)
		}
		for _, node := range nodes {
			look(node)
		}
	} else {
		if !p.mayYield(v, id, need.Whole*need.Size, now) {
			return 0
		}
		for node := p.ledger.NextUp(need.Type, 0); node != sched.None; node = p.ledger.NextUp(need.Type, node+1) {
			look(node)
		}
	}
	p.cleared = true
	return len(p.clear)
}

func (p *Pipeline) clears(v *sched.View, id sched.JobID, node sched.NodeID, now float64) bool {
	first := v.Nodes[node].First
	for g := first; g < first+sched.GPUID(v.Nodes[node].Spec.GPUs); g++ {
		if p.ledger.IsFree(g) || !p.ledger.IsUsable(g) {
			continue
		}
		if o := p.ledger.Owner(g); o == sched.None || !p.evictable(v, o, id, now) {
			return false
		}
	}
	return true
}

// mayYield reports whether job id of n GPUs would find as many among the free ones and those of lower-ranked holders,
// wherever they are.
func (p *Pipeline) mayYield(v *sched.View, id sched.JobID, n int, now float64) bool {
	n -= p.ledger.Free(p.groups.shapes[p.jobs[id].shape].types)
	for _, i := range p.groups.holding {
		if n > 0 {
			n = p.yield(v, &p.groups.list[i], 0, id, n, now)
		}
	}
	return n <= 0
}

// yield takes from n what the holder at i of the heap of g and those below it there hold, as far as they rank behind job
// id, and returns what is left of n. Where a holder does not, nobody below it does.
func (p *Pipeline) yield(v *sched.View, g *group, i int, id sched.JobID, n int, now float64) int {
	h := g.heap[i]
	if !beforeAt(&p.jobs[id], &p.jobs[h], id, h, now) {
		return n
	}
	if !p.isProtected(v, h) {
		n -= len(p.ledger.Set(h))
	}
	for c := 4*i + 1; c <= 4*i+4 && c < len(g.heap) && n > 0; c++ {
		n = p.yield(v, g, c, id, n, now)
	}
	return n
}
