package share

import (
	"cmp"
	"slices"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
)

// Need is what a job asks of a set.
type Need struct {
	GPUs  int
	Types sched.TypeSet
	MemGB float64 // per GPU
	Sum   bool    // its memory may be spread over its GPUs at will (model parallelism), else each needs its part
	Share bool    // it may join others
}

// Rule says which GPUs may be joined.
type Rule struct {
	Use, Memory float64 // thresholds, as the GPU is before the newcomer
	Most        int     // jobs on a GPU
}

// candidate is a node with what it has to offer, or a node in part.
type candidate struct {
	node sched.NodeID
	use  float64 // mean of the GPUs that would be taken
	free int     // GPUs there that no one is to hold
}

// finder lists candidate sets of GPUs, most used first.
//
// A set inside a node is the node's most used GPUs that may be joined, ties by number. A set on several nodes is whole
// nodes, the most used first, and a part of one for the rest. Last come GPUs that no one uses wherever they are.
//
// Deviation: the paper looks at every subset of GPUs. With nodes as units, the set found is the most used of all that
// fit where each node fits by itself, see TestCandidatesAgainstAllSubsets.
type finder struct {
	rule  Rule
	order []sched.NodeID // all nodes, as the last search had them: nearly in order for the next
	list  []candidate    // scratch from here on
	rest  []sched.NodeID // nodes that are not in list
	good  []candidate
	set   []sched.GPUID
	gb    []float64
}

// bar is why a job may not have a GPU.
type bar uint8

const (
	joins    bar = iota
	unshared     // the job shares with no one, or someone there does not or is on trial
	full         // as many jobs are there as may be
	used         // it is used above the threshold
	noMemory     // its memory is, or too little is left
	bars
)

// barred returns why a job of need n may not have the GPU.
func (f *finder) barred(s *spot, n *Need) bar {
	switch {
	case s.tenants == 0:
		return joins
	case !n.Share || s.closed:
		return unshared
	case s.tenants >= f.rule.Most:
		return full
	case s.use > f.rule.Use:
		return used
	case s.memory > f.rule.Memory || !n.Sum && !(s.freeGB > n.MemGB):
		return noMemory
	}
	return joins
}

// joinable reports whether a job of need n may have the GPU.
func (f *finder) joinable(s *spot, n *Need) bool { return f.barred(s, n) == joins }

// offer returns the mean use of the GPUs that take would take, and whether it would.
func (f *finder) offer(s *nodeSpots, n *Need, k int) (use float64, ok bool) {
	if !s.even {
		f.set = f.set[:0]
		return f.take(s, n, k)
	}
	if len(s.spots) < k {
		return 0, false
	}
	x := &s.spots[0]
	return x.use, f.joinable(x, n) && (x.tenants == 0 || x.freeGB > n.MemGB)
}

// take appends the first k GPUs of a node that may be joined to f.set, and returns their mean use; ok is false where
// there are not so many, or their memory does not do. The memory of each node must do for the job's part there.
func (f *finder) take(s *nodeSpots, n *Need, k int) (use float64, ok bool) {
	if s.even {
		if use, ok = f.offer(s, n, k); ok {
			f.set = append(f.set, s.gpus[:k]...)
		}
		return use, ok
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
	return use, len(f.set)-from == k && (!busy || !n.Sum || interference.FitsSum(f.gb, n.MemGB*float64(k)))
}

// First returns the first candidate set that fits says does, in order of GPU numbers; it is f's own, nil = none. Of a
// set on several nodes fits is asked about each node's part before it is about the whole.
func (c *Core) First(v *sched.View, n Need, fits func([]sched.GPUID) bool) []sched.GPUID {
	f, b := &c.finder, &c.book
	size, found := c.largest(v, n.Types), false
	switch {
	case size == 0:
		return nil
	case n.GPUs <= size:
		found = f.inside(v, b, &n, fits)
	default:
		found = f.across(v, b, &n, size, fits)
	}
	if found || f.scattered(v, b, n, fits) {
		return f.set
	}
	return nil
}

// largest returns the most GPUs of an open node of some types.
func (c *Core) largest(v *sched.View, types sched.TypeSet) (size int) {
	for i := range v.Nodes {
		if x := &v.Nodes[i]; x.Open() && types.Has(x.Spec.Type) {
			size = max(size, x.Spec.GPUs)
		}
	}
	return size
}

// offers fills f.list with the nodes of types that offer k GPUs.
func (f *finder) offers(v *sched.View, b *book, n *Need, k int, types sched.TypeSet) {
	for id := len(f.order); id < len(v.Nodes); id++ {
		f.order = append(f.order, sched.NodeID(id))
	}
	f.list, f.rest = f.list[:0], f.rest[:0]
	for _, id := range f.order {
		if node := &v.Nodes[id]; node.Open() && node.Spec.GPUs >= k && types.Has(node.Spec.Type) {
			s := b.spots(v, id)
			if use, ok := f.offer(s, n, k); ok {
				f.list = append(f.list, candidate{id, use, s.free})
				continue
			}
		}
		f.rest = append(f.rest, id)
	}
}

// sort puts f.list in order from its element i on, those before being the first, and remembers the order.
func (f *finder) sort(i int) {
	slices.SortFunc(f.list[i:], before)
	f.order = f.order[:0]
	for _, c := range f.list {
		f.order = append(f.order, c.node)
	}
	f.order = append(f.order, f.rest...)
}

// before orders candidates: the most used first, then those with fewer GPUs that no one is to hold, then by number.
func before(x, y candidate) int {
	switch {
	case x.use != y.use:
		return cmp.Compare(y.use, x.use)
	case x.free != y.free:
		return x.free - y.free
	}
	return int(x.node - y.node)
}

// inside looks at one node after the other.
func (f *finder) inside(v *sched.View, b *book, n *Need, fits func([]sched.GPUID) bool) bool {
	f.offers(v, b, n, n.GPUs, n.Types)
	for i := range f.list {
		switch i { // mostly the first will do: only if not, the others are put in order
		case 0:
			best := slices.Index(f.list, slices.MinFunc(f.list, before))
			f.list[0], f.list[best] = f.list[best], f.list[0]
		case 1:
			f.sort(1)
		}
		f.set = f.set[:0]
		f.take(b.spots(v, f.list[i].node), n, n.GPUs)
		if slices.Sort(f.set); fits(f.set) {
			return true
		}
	}
	return false
}

// across looks at sets of whole nodes that fit by themselves, the most used first, and a part of another, all of one
// type.
func (f *finder) across(v *sched.View, b *book, n *Need, size int, fits func([]sched.GPUID) bool) bool {
	whole, rest := n.GPUs/size, n.GPUs%size
	for typ := range typesOf(v) {
		if !n.Types.Has(typ) {
			continue
		}
		f.offers(v, b, n, size, sched.TypeSet(0).With(typ))
		f.sort(0)
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
func (f *finder) join(v *sched.View, b *book, n *Need, nodes []candidate, size, rest int,
	fits func([]sched.GPUID) bool) bool {
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
func (f *finder) part(v *sched.View, b *book, n *Need, taken []candidate, k int, fits func([]sched.GPUID) bool) bool {
	typ := v.Nodes[taken[0].node].Spec.Type
	var best candidate
	any := false
	for i := range v.Nodes {
		id := sched.NodeID(i)
		if !v.Nodes[i].Open() || v.Nodes[i].Spec.Type != typ ||
			slices.ContainsFunc(taken, func(c candidate) bool { return c.node == id }) {
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

// scattered looks at GPUs of one type that no one is to hold, from the nodes that have most of them.
func (f *finder) scattered(v *sched.View, b *book, n Need, fits func([]sched.GPUID) bool) bool {
	n.Share = false
	for typ := range typesOf(v) {
		if !n.Types.Has(typ) {
			continue
		}
		f.list, f.set = f.list[:0], f.set[:0]
		for i := range v.Nodes {
			if v.Nodes[i].Open() && v.Nodes[i].Spec.Type == typ {
				f.list = append(f.list, candidate{node: sched.NodeID(i), free: b.spots(v, sched.NodeID(i)).free})
			}
		}
		slices.SortFunc(f.list, func(x, y candidate) int {
			return cmp.Or(cmp.Compare(y.free, x.free),
				cmp.Compare(x.node, y.node))
		})
		for _, c := range f.list {
			if k := min(c.free, n.GPUs-len(f.set)); k > 0 {
				f.take(b.spots(v, c.node), &n, k)
			}
		}
		if slices.Sort(f.set); len(f.set) == n.GPUs && fits(f.set) {
			return true
		}
	}
	return false
}
