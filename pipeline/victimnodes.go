package pipeline

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// evictOnNode is evictFor for a gang that fits iff one node has n free GPUs. Evicting holders from the worst on, the
// first node to have them is one of those of the last victim; that victim is found node by node, and only what is worse
// than it on its own nodes needs to go.
func (x *victims) evictOnNode(v *sched.View, id sched.JobID, n int, t sched.TypeID, now float64) bool {
	last := x.lastVictimOf(v, id, n, t, now)
	if last == sched.None {
		return false
	}
	x.tenants = append(x.tenants[:0], last)
	for _, g := range x.books.ledger.Set(last) {
		first := v.Nodes[v.GPUs[g].Node].First
		for h := first; h < first+sched.GPUID(v.Nodes[v.GPUs[g].Node].Spec.GPUs); h++ {
			if o := x.books.ledger.Owner(h); o != sched.None && x.evictable(v, id, o, last, now) &&
				!slices.Contains(x.tenants, o) {
				x.tenants = append(x.tenants, o)
			}
		}
	}
	x.evictTenants(now)
	return true
}

// evictTenants evicts x.tenants, worst first.
func (x *victims) evictTenants(now float64) {
	slices.SortFunc(x.tenants, func(a, b sched.JobID) int {
		if x.books.beforeAt(b, a, now) {
			return -1
		}
		return 1
	})
	for _, w := range x.tenants {
		x.ranks.groups.remove(x.books.jobs, w)
		x.evict(w)
	}
}

// evictOnNodes is evictFor for a gang that fits iff so many nodes are wholly free, when as many of x.clear can be. A
// node is free once its best holder goes; evicting from the worst on, the last victim is one of these.
func (x *victims) evictOnNodes(v *sched.View, nodes int, now float64) {
	x.tenants, x.tenantGPUs = x.tenants[:0], x.tenantGPUs[:0]
	for _, node := range x.clear {
		if best := x.bestOn(v, node, now); best != sched.None {
			x.tenants, x.tenantGPUs = append(x.tenants, best), append(x.tenantGPUs, 1)
		} else {
			nodes--
		}
	}
	last := x.nthWorst(nodes, now)
	x.tenants = x.tenants[:0]
	for _, node := range x.clear {
		if best := x.bestOn(v, node, now); best == sched.None || x.books.beforeAt(best, last, now) {
			continue
		}
		first := v.Nodes[node].First
		for g := first; g < first+sched.GPUID(v.Nodes[node].Spec.GPUs); g++ {
			if o := x.books.ledger.Owner(g); o != sched.None && x.books.ledger.IsUsable(g) &&
				!slices.Contains(x.tenants, o) {
				x.tenants = append(x.tenants, o)
			}
		}
	}
	x.evictTenants(now)
}

// bestOn returns the holder on a node that ranks first, or None.
func (x *victims) bestOn(v *sched.View, node sched.NodeID, now float64) sched.JobID {
	best, first := sched.JobID(sched.None), v.Nodes[node].First
	for g := first; g < first+sched.GPUID(v.Nodes[node].Spec.GPUs); g++ {
		if o := x.books.ledger.Owner(g); o != sched.None && o != best && x.books.ledger.IsUsable(g) &&
			(best == sched.None || x.books.beforeAt(o, best, now)) {
			best = o
		}
	}
	return best
}

// lastVictimOf looks at the nodes that may have become able to hold job id since it last did not fit, or at all where
// holders may be evicted.
func (x *victims) lastVictimOf(v *sched.View, id sched.JobID, n int, t sched.TypeID, now float64) sched.JobID {
	x.looked.begin(len(v.Nodes))
	last := sched.JobID(sched.None)
	look := func(node sched.NodeID) {
		if x.looked.first(node) {
			if w := x.lastVictim(v, node, id, last, n, now); w != sched.None {
				last = w
			}
		}
	}
	if nodes, f := x.sinceFailure(v, id); f != nil {
		for _, node := range nodes {
			look(node)
		}
		return last
	}
	return x.leaveUntil(v, id, now, func(node sched.NodeID, has int) bool {
		return has >= n && v.Nodes[node].Spec.Type == t
	})
}

// lastVictim returns the holder whose eviction, after that of all worse ones, gives job id its n GPUs on the node; None
// if that takes a holder which is not worse than both id and the best found so far on other nodes.
func (x *victims) lastVictim(v *sched.View, node sched.NodeID, id, best sched.JobID, n int, now float64) sched.JobID {
	usable, free := x.books.ledger.UsableOn(node), x.books.ledger.FreeOn(node)
	if usable < n {
		return sched.None
	}
	if best == sched.None {
		best = id
	}
	spare := usable - n // GPUs that may stay with holders that are not evicted
	x.tenants = x.tenants[:0]
	x.tenantGPUs = x.tenantGPUs[:0]
	first := v.Nodes[node].First
	for g := first; g < first+sched.GPUID(v.Nodes[node].Spec.GPUs); g++ {
		if x.books.ledger.IsFree(g) || !x.books.ledger.IsUsable(g) {
			continue
		}
		o := x.books.ledger.Owner(g)
		if k := len(x.tenants) - 1; k >= 0 && x.tenants[k] == o {
			x.tenantGPUs[k]++
			continue
		}
		if o == sched.None || !x.evictable(v, id, o, best, now) {
			if spare--; spare < 0 {
				return sched.None
			}
			continue
		}
		x.tenants = append(x.tenants, o)
		x.tenantGPUs = append(x.tenantGPUs, 1)
	}
	return x.nthWorst(n-free, now)
}

// nthWorst returns the tenant that gives up GPU number n when x.tenants leave the node from the worst on.
func (x *victims) nthWorst(n int, now float64) sched.JobID {
	for i := range x.tenants { // few: a selection sort that stops early
		w := i
		for k := i + 1; k < len(x.tenants); k++ {
			if a, b := x.tenants[w], x.tenants[k]; a != b && x.books.beforeAt(a, b, now) {
				w = k
			}
		}
		x.tenants[i], x.tenants[w] = x.tenants[w], x.tenants[i]
		x.tenantGPUs[i], x.tenantGPUs[w] = x.tenantGPUs[w], x.tenantGPUs[i]
		if n -= x.tenantGPUs[i]; n <= 0 {
			return x.tenants[i]
		}
	}
	return sched.None
}

// clearable returns how many nodes of need could be wholly freed for job id of n GPUs, or that they are enough.
func (x *victims) clearable(v *sched.View, id sched.JobID, n int, need sched.NodeNeed, now float64) int {
	if need.Whole == 0 {
		return 0
	}
	x.looked.begin(len(v.Nodes))
	x.goes, x.stays = sched.None, sched.None
	look := func(node sched.NodeID) {
		if x.looked.first(node) && x.books.ledger.UsableOn(node) == need.Size && x.clears(v, id, node, now) {
			x.clear = append(x.clear, node)
		}
	}
	if nodes, f := x.sinceFailure(v, id); f != nil && f.cleared {
		for _, node := range f.nodes {
			look(node)
		}
		for _, node := range nodes {
			look(node)
		}
	} else {
		if !x.mayYield(v, id, need.Whole*need.Size, now) {
			return 0
		}
		x.clearAny(v, id, n, need, now)
	}
	x.cleared = true
	return len(x.clear)
}

// clearAny finds the nodes of need that can be wholly freed for job id of n GPUs: all, or as many as are enough.
func (x *victims) clearAny(v *sched.View, id sched.JobID, n int, need sched.NodeNeed, now float64) {
	l := x.books.ledger
	for f := l.NextNode(need.Type, need.Size, 0); f != sched.None; f = l.NextNode(need.Type, need.Size, f+1) {
		if l.UsableOn(f) == need.Size {
			x.clear = append(x.clear, f)
		}
	}
	x.leaveUntil(v, id, now, func(node sched.NodeID, has int) bool {
		if has == need.Size && l.UsableOn(node) == has && v.Nodes[node].Spec.Type == need.Type {
			x.clear = append(x.clear, node)
		}
		return len(x.clear) >= need.Whole && need.Whole*need.Size == n
	})
}

// clears reports whether all who hold GPUs of the node may be evicted for job id. A gang is mostly asked about again on
// the next node: x.goes and x.stays are the last that may and may not.
func (x *victims) clears(v *sched.View, id sched.JobID, node sched.NodeID, now float64) bool {
	first := v.Nodes[node].First
	for g := first; g < first+sched.GPUID(v.Nodes[node].Spec.GPUs); g++ {
		if x.books.ledger.IsFree(g) || !x.books.ledger.IsUsable(g) {
			continue
		}
		o := x.books.ledger.Owner(g)
		if o == sched.None || o == x.stays || o != x.goes && !x.evictable(v, id, o, id, now) {
			x.stays = o
			return false
		}
		x.goes = o
	}
	return true
}

// looked is the nodes that a search has looked at: those where something was given up are logged each time.
type looked struct {
	at  []uint32 // by node: the last search that looked at it
	now uint32
}

// begin starts another search among so many nodes.
func (l *looked) begin(nodes int) {
	if l.now++; l.now == 0 || len(l.at) < nodes {
		l.at, l.now = make([]uint32, nodes), 1
	}
}

// first reports whether the search has not looked at node yet, and notes that it has.
func (l *looked) first(node sched.NodeID) bool {
	was := l.at[node]
	l.at[node] = l.now
	return was != l.now
}
