package share

import (
	"cmp"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// book is who is to hold which GPU, and what their use and memory come to: the targets of the view, and those of the
// walk under way.
type book struct {
	Know   Known
	On     [][]sched.JobID // by GPU, in order of ids
	Held   [][]sched.GPUID // by job
	Shares []bool          // by job: it shares what it holds
	trial  []bool          // by job: it holds it on trial
	open   []sched.JobID   // those on trial, in order of ids
	seen   []seen          // by GPU
	nodes  []nodeSpots     // by node

	Waiting []sched.JobID // jobs that may be given GPUs and have none, in the order in which they are served
	Queued  []bool        // by job: it is in waiting
	classes sched.Classer // of those in waiting, the larger first; nil = by priority
	class   []rank        // by job: as of now
}

// seen is what was measured of a GPU since those on it last changed.
type seen struct {
	since  sched.Time
	use    float64 // mean, 0..1
	number int32   // of measurements of use; 0 = none counts yet
	memGB  float64 // most; 0 = unknown
}

// rank is the class of a job, the larger first, and until when it holds.
type rank struct {
	class int64
	until sched.Time
}

// nodeSpots are the usable GPUs of a node, the busiest first, then by number.
type nodeSpots struct {
	fresh bool
	even  bool // they have the same jobs and differ in nothing but their numbers
	free  int  // GPUs that no one is to hold
	spots []spot
	gpus  []sched.GPUID // of spots: what is taken of nodes that are even
}

// spot is what a newcomer finds on a GPU.
type spot struct {
	gpu     sched.GPUID
	use     float64 // of its jobs
	memory  float64 // of all its memory, in use at the peak; 1 = unknown
	freeGB  float64
	tenants int
	closed  bool // one that does not share, or a newcomer on trial, has it
}

// grow makes room for all that v shows.
func (b *book) grow(v *sched.View) {
	for len(b.On) < len(v.GPUs) {
		b.On, b.seen = append(b.On, nil), append(b.seen, seen{})
	}
	for len(b.nodes) < len(v.Nodes) {
		b.nodes = append(b.nodes, nodeSpots{})
	}
	for len(b.Held) < len(v.Jobs) {
		b.Held, b.Shares, b.trial, b.Queued = append(b.Held, nil), append(b.Shares, false), append(b.trial, false),
			append(b.Queued, false)
		b.class = append(b.class, rank{})
	}
}

// sync brings what is known of job id up to the view.
func (b *book) sync(v *sched.View, id sched.JobID) {
	b.grow(v)
	j := &v.Jobs[id]
	if !slices.Equal(b.Held[id], j.Target) || b.Shares[id] != (j.Share == sched.Shared) || b.trial[id] != j.Trial {
		b.Put(v, id, j.Target, j.Share == sched.Shared, j.Trial)
	}
	switch wants := j.Eligible() && len(j.Target) == 0; {
	case wants != b.Queued[id]:
		b.Queue(v, id, wants)
	case wants && b.class[id].until == sched.Never && b.rank(v, id) != b.class[id]: // it was up when it was queued
		b.Queue(v, id, false)
		b.Queue(v, id, true)
	}
}

// resync brings all of it up to the view.
func (b *book) resync(v *sched.View) {
	b.grow(v)
	for id := range v.Jobs {
		b.sync(v, sched.JobID(id))
	}
}

// Put has job id hold set from now on.
func (b *book) Put(v *sched.View, id sched.JobID, set []sched.GPUID, share, trial bool) {
	same := slices.Equal(b.Held[id], set)
	for _, g := range b.Held[id] {
		b.On[g] = slices.DeleteFunc(b.On[g], func(o sched.JobID) bool { return o == id })
		b.touch(v, g, same)
	}
	b.Held[id] = append(b.Held[id][:0], set...)
	b.Shares[id], b.trial[id] = share && len(set) > 0, trial && len(set) > 0
	switch at, open := slices.BinarySearch(b.open, id); {
	case b.trial[id] && !open:
		b.open = slices.Insert(b.open, at, id)
	case !b.trial[id] && open:
		b.open = slices.Delete(b.open, at, at+1)
	}
	for _, g := range set {
		at, _ := slices.BinarySearch(b.On[g], id)
		b.On[g] = slices.Insert(b.On[g], at, id)
		b.touch(v, g, same)
	}
}

// touch notes that something changed on GPU g; unless it has the same jobs, what was measured there counts no more.
func (b *book) touch(v *sched.View, g sched.GPUID, same bool) {
	b.nodes[v.GPUs[g].Node].fresh = false
	if !same {
		b.seen[g] = seen{since: v.Now}
	}
}

// Queue lets job id wait, or no longer.
func (b *book) Queue(v *sched.View, id sched.JobID, wants bool) {
	if !b.Queued[id] {
		b.class[id] = b.rank(v, id)
	}
	at, found := slices.BinarySearchFunc(b.Waiting, id, b.before)
	switch {
	case wants && !found:
		b.Waiting = slices.Insert(b.Waiting, at, id)
	case !wants && found:
		b.Waiting = slices.Delete(b.Waiting, at, at+1)
	}
	b.Queued[id] = wants
}

// ByClass has jobs wait in order of their classes, instead of their priorities. It is for a new Core.
func (b *book) ByClass(c sched.Classer) { b.classes = c }

// rank returns the class of job id.
func (b *book) rank(v *sched.View, id sched.JobID) rank {
	if b.classes == nil {
		return rank{int64(v.Jobs[id].Spec.Priority), sched.Never}
	}
	class, until := b.classes.Class(v, id)
	return rank{class, until}
}

// before orders jobs that wait: by class, then by arrival.
func (b *book) before(x, y sched.JobID) int {
	return cmp.Or(cmp.Compare(b.class[y].class, b.class[x].class), cmp.Compare(x, y))
}

// Rises returns when the class of some job that waits changes next; Never if none does.
func (b *book) Rises() sched.Time {
	next := sched.Never
	if b.classes != nil {
		for _, id := range b.Waiting {
			next = min(next, b.class[id].until)
		}
	}
	return next
}

// Rise puts jobs that wait in order by the classes that they have now, and reports whether any has changed.
func (b *book) Rise(v *sched.View) bool {
	if b.Rises() > v.Now {
		return false
	}
	for _, id := range b.Waiting {
		b.class[id] = b.rank(v, id)
	}
	slices.SortFunc(b.Waiting, b.before)
	return true
}

// ReportClass says the class of a job that waits.
func (b *book) ReportClass(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	if e, ok := b.classes.(sched.Explainer); ok {
		e.Explain(v, j, say)
	}
}

// measured takes what was measured of the GPUs of a node or a job. What was measured before each job there can have
// gone through an epoch says nothing of its peak.
func (b *book) measured(v *sched.View, e *sched.Event) {
	b.grow(v)
	var gpus []sched.GPUID
	switch {
	case e.Job != sched.None:
		gpus = b.Held[e.Job]
	case e.Node != sched.None:
		n := &v.Nodes[e.Node]
		for g := n.First; g < n.First+sched.GPUID(n.Spec.GPUs); g++ {
			gpus = append(gpus, g)
		}
	}
	for _, g := range gpus {
		s := &b.seen[g]
		if len(b.On[g]) == 0 || e.Time.Sub(s.since) < b.epoch(v, b.On[g]) || !(e.Rate > 0 && e.Rate <= 1) {
			continue
		}
		s.number++
		s.use += (e.Rate - s.use) / float64(s.number)
		s.memGB = max(s.memGB, float64(e.MemGB))
		b.nodes[v.GPUs[g].Node].fresh = false
	}
}

// epoch returns the longest epoch alone of jobs.
func (b *book) epoch(v *sched.View, jobs []sched.JobID) (longest time.Duration) {
	for _, id := range jobs {
		longest = max(longest, b.Know.epoch(v, id))
	}
	return longest
}

// spots returns the usable GPUs of node n, and how many of them no one is to hold.
func (b *book) spots(v *sched.View, n sched.NodeID) *nodeSpots {
	s := &b.nodes[n]
	if s.fresh {
		return s
	}
	node := &v.Nodes[n]
	s.fresh, s.free, s.spots = true, 0, s.spots[:0]
	for g := node.First; g < node.First+sched.GPUID(node.Spec.GPUs); g++ {
		if !v.Usable(g) {
			continue
		}
		s.spots = append(s.spots, b.spot(v, g, float64(node.Spec.GPUMemGB)))
		if len(b.On[g]) == 0 {
			s.free++
		}
	}
	if s.even = b.alike(s.spots); !s.even {
		slices.SortFunc(s.spots, func(x, y spot) int {
			return cmp.Or(cmp.Compare(y.use, x.use),
				cmp.Compare(x.gpu, y.gpu))
		})
	}
	s.gpus = s.gpus[:0]
	for i := range s.spots {
		s.gpus = append(s.gpus, s.spots[i].gpu)
	}
	return s
}

// alike reports whether spots have the same jobs and differ in nothing but their numbers.
func (b *book) alike(spots []spot) bool {
	for i := range spots {
		x := spots[i]
		if x.gpu = spots[0].gpu; x != spots[0] || !slices.Equal(b.On[spots[i].gpu], b.On[x.gpu]) {
			return false
		}
	}
	return true
}

// spot looks at a GPU of so much memory: at what was measured there, else at what its jobs say of themselves.
func (b *book) spot(v *sched.View, g sched.GPUID, totalGB float64) spot {
	s := spot{gpu: g, tenants: len(b.On[g])}
	peak, known := 0.0, totalGB > 0
	for _, id := range b.On[g] {
		spec := v.Jobs[id].Spec
		s.use += float64(spec.Util)
		memGB := b.Know.memory(v, id)
		peak += memGB
		known = known && memGB > 0
		s.closed = s.closed || !b.Shares[id] || b.trial[id]
	}
	if x := &b.seen[g]; x.number > 0 {
		// what a node was measured to have on one GPU may be of any
		if s.use = x.use; x.memGB > 0 && b.Know.Peaks == nil {
			peak, known = x.memGB, totalGB > 0
		}
	}
	if s.memory = 1; known {
		s.memory, s.freeGB = peak/totalGB, totalGB-b.Know.Room(peak)
	}
	return s
}

// same reports whether two GPUs are of a kind and have the same jobs.
func (b *book) same(v *sched.View, g, h sched.GPUID) bool {
	return slices.Equal(b.On[g], b.On[h]) && (v.GPUs[g].Node == v.GPUs[h].Node || kindOf(v, g) == kindOf(v, h))
}

// partner returns the jobs on gpus, in order of ids, in dst.
func (b *book) partner(gpus []sched.GPUID, dst []sched.JobID) []sched.JobID {
	dst = dst[:0]
	for i, g := range gpus {
		if i == 0 || !slices.Equal(b.On[g], b.On[gpus[i-1]]) {
			dst = append(dst, b.On[g]...)
		}
	}
	if len(gpus) > 0 && len(dst) > len(b.On[gpus[0]]) {
		slices.Sort(dst)
		dst = slices.Compact(dst)
	}
	return dst
}
