package eaco

import (
	"cmp"
	"slices"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
)

// need is what a job asks of a set.
type need struct {
	gpus  int
	types sched.TypeSet
	memGB float64 // per GPU
	sum   bool    // its memory may be spread over its GPUs at will (model parallelism), else each needs its part
	share bool    // it may join others
}

// rule says which GPUs may be joined.
type rule struct {
	use, memory float64 // thresholds, as the GPU is before the newcomer
	most        int     // jobs on a GPU
}

// candidate is a node with what it has to offer, or a node in part.
type candidate struct {
	node sched.NodeID
	use  float64 // mean of the GPUs that would be taken
	free int     // GPUs there that nobody is to hold
}

// finder lists candidate sets of GPUs, most used first.
//
// A set inside a node is the node's most used GPUs that may be joined, ties by number. A set on several nodes is whole nodes, the
// most used first, and a part of one for the rest. Last come GPUs that nobody uses wherever they are.
//
// Deviation: the paper looks at every subset of GPUs. With nodes as units, the set found is the most used of all that fit where each node
// fits by itself, see TestCandidatesAgainstAllSubsets.
type finder struct {
	rule rule
	list []candidate
	good []candidate
	set  []sched.GPUID
	gb   []float64
}

// joinable reports whether a job of need n may have the GPU.
func (f *finder) joinable(s *spot, n *need) bool {
	switch {
	case s.tenants == 0:
		return true
	case !n.share || s.closed || s.tenants >= f.rule.most || s.use > f.rule.use || s.memory > f.rule.memory:
		return false
	}
	return n.sum || s.freeGB > n.memGB
}

// take appends the first k GPUs of a node that may be joined to f.set, and returns their mean use; ok is false where there are
// not so many, or their memory does not do. The memory of each node must do for the job's part there.
func (f *finder) take(s *nodeSpots, n *need, k int) (use float64, ok bool) {
	if len(s.spots) < k {
		return 0, false
	}
	from, busy := len(f.set), false
	f.gb = f.gb[:0]
	for i := range s.spots {
		x := &s.spots[i]
		if len(f.set)-from == k {
			break
		}
		if f.joinable(x, n) {
			f.set = append(f.set, x.gpu)
			f.gb = append(f.gb, x.freeGB)
			use += x.use / float64(k)
			busy = busy || x.tenants > 0
		}
	}
	return use, len(f.set)-from == k && (!busy || !n.sum || interference.FitsSum(f.gb, n.memGB*float64(k)))
}

// first returns the first candidate set that fits says does, in order of GPU numbers; it is f's own, nil = none. Of a set on several nodes fits is
// asked about each node's part before it is about the whole.
func (f *finder) first(v *sched.View, b *book, n need, fits func([]sched.GPUID) bool) []sched.GPUID {
	size := 0
	for i := range v.Nodes {
		if x := &v.Nodes[i]; x.Open() && n.types.Has(x.Spec.Type) {
			size = max(size, x.Spec.GPUs)
		}
	}
	found := false
	switch {
	case size == 0:
		return nil
	case n.gpus <= size:
		found = f.inside(v, b, &n, fits)
	default:
		found = f.across(v, b, &n, size, fits)
	}
	if found || f.scattered(v, b, n, fits) {
		return f.set
	}
	return nil
}

// offers fills f.list with the nodes that offer k GPUs, by number.
func (f *finder) offers(v *sched.View, b *book, n *need, k int, typ sched.TypeID, any bool) {
	f.list = f.list[:0]
	for i := range v.Nodes {
		node := &v.Nodes[i]
		if !node.Open() || node.Spec.GPUs < k || !n.types.Has(node.Spec.Type) || !any && node.Spec.Type != typ {
			continue
		}
		s := b.spots(v, sched.NodeID(i))
		f.set = f.set[:0]
		if use, ok := f.take(s, n, k); ok {
			f.list = append(f.list, candidate{sched.NodeID(i), use, s.free})
		}
	}
}

// before orders candidates: the most used first, then those with fewer GPUs that nobody is to hold, then by number.
func before(x, y candidate) int {
	if x.use != y.use { // far oftener than not: cmp.Or would compare all
		return cmp.Compare(y.use, x.use)
	}
	return cmp.Or(cmp.Compare(x.free, y.free), cmp.Compare(x.node, y.node))
}

// inside looks at one node after the other.
func (f *finder) inside(v *sched.View, b *book, n *need, fits func([]sched.GPUID) bool) bool {
	f.offers(v, b, n, n.gpus, 0, true)
	for i := range f.list {
		switch i { // mostly the first will do: only if not, the others are put in order
		case 0:
			best := slices.Index(f.list, slices.MinFunc(f.list, before))
			f.list[0], f.list[best] = f.list[best], f.list[0]
		case 1:
			slices.SortFunc(f.list[1:], before)
		}
		f.set = f.set[:0]
		f.take(b.spots(v, f.list[i].node), n, n.gpus)
		if slices.Sort(f.set); fits(f.set) {
			return true
		}
	}
	return false
}

// across looks at sets of whole nodes that fit by themselves, the most used first, and a part of another, all of one type.
func (f *finder) across(v *sched.View, b *book, n *need, size int, fits func([]sched.GPUID) bool) bool {
	whole, rest := n.gpus/size, n.gpus%size
	for typ := range typesOf(v) {
		if !n.types.Has(typ) {
			continue
		}
		f.offers(v, b, n, size, typ, false)
		slices.SortFunc(f.list, before)
		good := f.good[:0]
		for _, c := range f.list {
			f.set = f.set[:0]
			if f.take(b.spots(v, c.node), n, size); !fits(f.set) {
				continue
			}
			if good = append(good, c); len(good) < whole {
				continue
			}
			if f.good = good; f.join(v, b, n, good[len(good)-whole:], size, rest, fits) {
				return true
			}
		}
	}
	return false
}

// join puts together whole nodes and the rest.
func (f *finder) join(v *sched.View, b *book, n *need, nodes []candidate, size, rest int, fits func([]sched.GPUID) bool) bool {
	if rest > 0 && !f.part(v, b, n, nodes, rest, fits) {
		return false
	}
	if rest == 0 {
		f.set = f.set[:0]
	}
	for _, c := range nodes {
		f.take(b.spots(v, c.node), n, size)
	}
	slices.Sort(f.set)
	return fits(f.set)
}

// part has f.set be k GPUs of the most used node that offers them, fits, and is not among taken.
func (f *finder) part(v *sched.View, b *book, n *need, taken []candidate, k int, fits func([]sched.GPUID) bool) bool {
	typ := v.Nodes[taken[0].node].Spec.Type
	var best candidate
	any := false
	for i := range v.Nodes {
		id := sched.NodeID(i)
		if !v.Nodes[i].Open() || v.Nodes[i].Spec.Type != typ || slices.ContainsFunc(taken, func(c candidate) bool { return c.node == id }) {
			continue
		}
		s := b.spots(v, id)
		f.set = f.set[:0]
		use, ok := f.take(s, n, k)
		if ok && (!any || use > best.use || use == best.use && s.free < best.free) && fits(f.set) {
			best, any = candidate{id, use, s.free}, true
		}
	}
	if f.set = f.set[:0]; any {
		f.take(b.spots(v, best.node), n, k)
	}
	return any
}

func typesOf(v *sched.View) sched.TypeID {
	most := sched.TypeID(0)
	for i := range v.Nodes {
		most = max(most, v.Nodes[i].Spec.Type+1)
	}
	return most
}

// scattered looks at GPUs of one type that nobody is to hold, from the nodes that have most of them.
func (f *finder) scattered(v *sched.View, b *book, n need, fits func([]sched.GPUID) bool) bool {
	n.share = false
	for typ := range typesOf(v) {
		if !n.types.Has(typ) {
			continue
		}
		f.list, f.set = f.list[:0], f.set[:0]
		for i := range v.Nodes {
			if v.Nodes[i].Open() && v.Nodes[i].Spec.Type == typ {
				f.list = append(f.list, candidate{node: sched.NodeID(i), free: b.spots(v, sched.NodeID(i)).free})
			}
		}
		slices.SortFunc(f.list, func(x, y candidate) int { return cmp.Or(cmp.Compare(y.free, x.free), cmp.Compare(x.node, y.node)) })
		for _, c := range f.list {
			if k := min(c.free, n.gpus-len(f.set)); k > 0 {
				f.take(b.spots(v, c.node), &n, k)
			}
		}
		if slices.Sort(f.set); len(f.set) == n.gpus && fits(f.set) {
			return true
		}
	}
	return false
}
