package pipeline

import (
	"math"

	"github.com/trainyard/trainyard/sched"
)

// groups holds jobs in heaps, one per (shape, slope) of waiting jobs, or per class as well where byClass, and one per
// slope of holding jobs. Inside a group keys keep their relative order while nothing happens to its jobs, because they
// grow at one rate; so the best waiting job of a shape and the worst holding job of a slope are at the top of a heap.
type groups struct {
	list    []group
	waiting []int32 // groups of waiting jobs that are not empty, in no particular order
	holding []int32 // the same of holding jobs
	index   map[groupKey]int32
	still   int32 // index of the group of holding jobs of slope 0, plus 1
	shapes  []shape
	known   map[shapeKey]int32
	recent  [16]recent // by width: most jobs differ in it alone
	widths  widths
	byClass bool
}

// none is the absence of a group.
const none int32 = -1

type groupKey struct {
	shape int32 // None for holding jobs
	slope float64
	class int64 // of waiting jobs, see books.classOf; 0 where groups are not by class
}

type group struct {
	groupKey
	heap   []sched.JobID // best first for waiting jobs, worst first for holding ones
	failed uint32        // the walk in which its shape did not fit
	headIn uint32        // the walk in which it is among the heads
	at     int32         // index in groups.waiting or holding while it is not empty
	fail   failure
}

// shapeKey is what decides whether a job fits: jobs that agree in it are alike to the walk, but for their rank.
type shapeKey struct {
	gpus, user, order, place int32
	types                    sched.TypeSet
	cpus, memory             float32
}

type shape struct {
	shapeKey
	still int32  // index of its group of slope 0, plus 1
	over  uint32 // the walk in which its user was over the limit
	fits  tri
}

type tri uint8

const (
	unknown tri = iota
	yes
	no
)

// recent is a shape that was asked for; next is its index plus 1, 0 = none was.
type recent struct {
	key  shapeKey
	next int32
}

// shapeOf returns the index of shape k, which is made if it is new.
func (gs *groups) shapeOf(k shapeKey) int32 {
	r := &gs.recent[k.gpus&15]
	if r.next == 0 || r.key != k {
		*r = recent{k, gs.lookUp(k) + 1}
	}
	return r.next - 1
}

// lookUp is shapeOf of all shapes.
func (gs *groups) lookUp(k shapeKey) int32 {
	i, ok := gs.known[k]
	if !ok {
		if gs.known == nil {
			gs.known = make(map[shapeKey]int32)
		}
		i = int32(len(gs.shapes))
		gs.shapes = append(gs.shapes, shape{shapeKey: k})
		gs.known[k] = i
	}
	return i
}

func (gs *groups) forgetFits() {
	for i := range gs.shapes {
		gs.shapes[i].fits = unknown
	}
}

// before reports whether a ranks before b, the keys of jobs i and j and of one slope.
func before(a, b *sched.Key, i, j sched.JobID) bool {
	switch {
	case a.Level != b.Level:
		return a.Level < b.Level
	case a.Value != b.Value:
		return a.Value < b.Value
	case a.Seq != b.Seq:
		return a.Seq < b.Seq
	}
	return i < j
}

// beforeAt is before at time t for keys of any slope. Values that only rounding makes equal at t keep the order they
// have inside their group.
func beforeAt(a, b *entry, i, j sched.JobID, t float64) bool {
	if a.key.Level != b.key.Level {
		return a.key.Level < b.key.Level
	}
	if x, y := valueAt(&a.key, t), valueAt(&b.key, t); x != y {
		return x < y
	}
	if a.key.Slope == b.key.Slope {
		return before(&a.key, &b.key, i, j)
	}
	if a.key.Seq != b.key.Seq {
		return a.key.Seq < b.key.Seq
	}
	return i < j
}

// atZero returns the value at time 0 of key k as given at time t. Rounding never makes the value at t larger than it
// was given: else two jobs of equal rank could evict each other for ever at one instant.
func atZero(k sched.Key, t float64) float64 {
	given := k.Value
	k.Value -= float64(k.Slope * t)
	for range 4 {
		if over := valueAt(&k, t) - given; over > 0 {
			k.Value = min(k.Value-over, math.Nextafter(k.Value, math.Inf(-1)))
		}
	}
	return k.Value
}

func valueAt(k *sched.Key, t float64) float64 {
	if k.Slope == 0 {
		return k.Value
	}
	return k.Value + float64(k.Slope*t)
}

func (g *group) above(jobs []entry, i, j sched.JobID) bool {
	if g.shape == sched.None {
		i, j = j, i
	}
	return before(&jobs[i].key, &jobs[j].key, i, j)
}

// add puts job id into the group of its place, shape and slope.
func (gs *groups) add(jobs []entry, id sched.JobID) {
	x := &jobs[id]
	k := gs.keyOf(x)
	i := gs.find(k)
	x.group = i
	g := &gs.list[i]
	if len(g.heap) == 0 {
		gs.enlist(i)
	}
	g.heap = append(g.heap, id)
	g.up(jobs, len(g.heap)-1)
	if gs.widths.on && k.shape != sched.None && g.heap[0] == id {
		gs.widths.touch(gs, jobs, i)
	}
}

// keyOf returns where a job belongs that is not away.
func (gs *groups) keyOf(x *entry) groupKey {
	k := groupKey{shape: x.shape, slope: x.key.Slope}
	switch {
	case x.in == holding:
		k.shape = sched.None
	case gs.byClass:
		k.class = x.key.Level &^ sched.MaxLevel
	}
	return k
}

// find returns the group of k, which is made if it is new.
func (gs *groups) find(k groupKey) int32 {
	still := &gs.still // groups of slope 0 are asked for most
	if k.shape != sched.None {
		still = &gs.shapes[k.shape].still
	}
	plain := k.slope == 0 && k.class == 0
	if plain && *still > 0 {
		return *still - 1
	}
	i, ok := gs.index[k]
	if !ok {
		if gs.index == nil {
			gs.index = make(map[groupKey]int32)
		}
		i = int32(len(gs.list))
		gs.list = append(gs.list, group{groupKey: k, fail: failure{id: sched.None}})
		gs.index[k] = i
	}
	if plain {
		*still = i + 1
	}
	return i
}

// remove takes job id out of its group, if it is in one.
func (gs *groups) remove(jobs []entry, id sched.JobID) {
	x := &jobs[id]
	if x.group == sched.None {
		return
	}
	g := &gs.list[x.group]
	i, last := int(x.pos), len(g.heap)-1
	moved := g.heap[last]
	g.heap = g.heap[:last]
	if last == 0 {
		gs.delist(x.group)
	}
	at := x.group
	x.group = sched.None
	if i != last {
		g.heap[i] = moved
		jobs[moved].pos = int32(i)
		if !g.up(jobs, i) {
			g.down(jobs, i)
		}
	}
	if i == 0 && gs.widths.on && g.shape != sched.None {
		gs.widths.touch(gs, jobs, at)
	}
}

// dissolve takes all jobs that wait out of their groups.
func (gs *groups) dissolve(jobs []entry) {
	for _, i := range gs.waiting {
		g := &gs.list[i]
		for _, id := range g.heap {
			jobs[id].group = sched.None
		}
		g.heap = g.heap[:0]
	}
	gs.waiting = gs.waiting[:0]
	gs.widths.on = false // made again by the next walk
}

// listOf returns the list of groups that are not empty to which g belongs.
func (gs *groups) listOf(g *group) *[]int32 {
	if g.shape == sched.None {
		return &gs.holding
	}
	return &gs.waiting
}

func (gs *groups) enlist(i int32) {
	g := &gs.list[i]
	l := gs.listOf(g)
	g.at = int32(len(*l))
	*l = append(*l, i)
}

func (gs *groups) delist(i int32) {
	g := &gs.list[i]
	l := gs.listOf(g)
	moved := (*l)[len(*l)-1]
	(*l)[g.at] = moved
	gs.list[moved].at = g.at
	*l = (*l)[:len(*l)-1]
}

// up moves the job at i towards the top and reports whether it moved.
func (g *group) up(jobs []entry, i int) bool {
	id, from := g.heap[i], i
	for i > 0 {
		p := (i - 1) / 4
		if !g.above(jobs, id, g.heap[p]) {
			break
		}
		g.heap[i] = g.heap[p]
		jobs[g.heap[i]].pos = int32(i)
		i = p
	}
	g.heap[i] = id
	jobs[id].pos = int32(i)
	return i != from
}

func (g *group) down(jobs []entry, i int) {
	id, n := g.heap[i], len(g.heap)
	for {
		best, end := -1, min(4*i+5, n)
		for c := 4*i + 1; c < end; c++ {
			if best < 0 || g.above(jobs, g.heap[c], g.heap[best]) {
				best = c
			}
		}
		if best < 0 || !g.above(jobs, g.heap[best], id) {
			break
		}
		g.heap[i] = g.heap[best]
		jobs[g.heap[i]].pos = int32(i)
		i = best
	}
	g.heap[i] = id
	jobs[id].pos = int32(i)
}
