package engine

import (
	"math"

	"github.com/trainyard/trainyard/sched"
)

// groups holds jobs in heaps, one per (shape, slope) of waiting jobs and one per slope of holding jobs. Inside a group
// keys keep their relative order while nothing happens to its jobs, because they grow at one rate; so the best waiting
// job of a shape and the worst holding job of a slope are at the top of a heap.
type groups struct {
	list   []group
	index  map[groupKey]int32
	shapes []shape
	known  map[shapeKey]int32
}

type groupKey struct {
	shape int32 // None for holding jobs
	slope float64
}

type group struct {
	groupKey
	heap   []sched.JobID // best first for waiting jobs, worst first for holding ones
	failed uint32        // the walk in which its shape did not fit

	// When its best job was failID and Pipeline.capacity was failCap, it did not fit.
	failID  sched.JobID
	failCap uint64
}

// shapeKey is what decides whether a job fits: jobs that agree in it are alike to the walk, but for their rank.
type shapeKey struct {
	gpus, user, order, place int32
	types                    sched.TypeSet
	cpus, memory             float32
}

type shape struct {
	shapeKey
	fits tri
}

type tri uint8

const (
	unknown tri = iota
	yes
	no
)

func (g *groups) shapeOf(p *Pipeline, v *sched.View, id sched.JobID) int32 {
	spec := v.Jobs[id].Spec
	k := shapeKey{gpus: spec.GPUs.Want, types: spec.Types, cpus: spec.CPUs, memory: spec.MemoryGB}
	if p.s.UserLimit > 0 {
		k.user = p.jobs[id].user
	}
	if s, ok := p.s.Order.(sched.Shaper); ok {
		k.order = s.Shape(v, id)
	}
	if s, ok := p.s.Place.(sched.Shaper); ok {
		k.place = s.Shape(v, id)
	}
	i, ok := g.known[k]
	if !ok {
		if g.known == nil {
			g.known = make(map[shapeKey]int32)
		}
		i = int32(len(g.shapes))
		g.shapes = append(g.shapes, shape{shapeKey: k})
		g.known[k] = i
	}
	return i
}

func (g *groups) forgetFits() {
	for i := range g.shapes {
		g.shapes[i].fits = unknown
	}
}

// before reports whether a ranks before b, both keys of one slope.
func before(a, b *entry, i, j sched.JobID) bool {
	switch {
	case a.key.Level != b.key.Level:
		return a.key.Level < b.key.Level
	case a.key.Value != b.key.Value:
		return a.key.Value < b.key.Value
	case a.key.Seq != b.key.Seq:
		return a.key.Seq < b.key.Seq
	}
	return i < j
}

// beforeAt is before at time t for keys of any slope. Values that only rounding makes equal at t keep the order they have
// inside their group.
func beforeAt(a, b *entry, i, j sched.JobID, t float64) bool {
	if a.key.Level != b.key.Level {
		return a.key.Level < b.key.Level
	}
	if x, y := valueAt(&a.key, t), valueAt(&b.key, t); x != y {
		return x < y
	}
	if a.key.Slope == b.key.Slope {
		return before(a, b, i, j)
	}
	if a.key.Seq != b.key.Seq {
		return a.key.Seq < b.key.Seq
	}
	return i < j
}

// atZero returns the value at time 0 of key k as given at time t. Rounding never makes the value at t larger than it was
// given: else two jobs of equal rank could evict each other for ever at one instant.
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
	return before(&jobs[i], &jobs[j], i, j)
}

// add puts job id into the group of its place, shape and slope.
func (g *groups) add(jobs []entry, id sched.JobID) {
	x := &jobs[id]
	k := groupKey{x.shape, x.key.Slope}
	if x.in == holding {
		k.shape = sched.None
	}
	i, ok := g.index[k]
	if !ok {
		if g.index == nil {
			g.index = make(map[groupKey]int32)
		}
		i = int32(len(g.list))
		g.list = append(g.list, group{groupKey: k, failID: sched.None})
		g.index[k] = i
	}
	x.group = i
	h := &g.list[i]
	h.heap = append(h.heap, id)
	h.up(jobs, len(h.heap)-1)
	if x.pos == 0 {
		h.failID = sched.None
	}
}

// remove takes job id out of its group, if it is in one.
func (g *groups) remove(jobs []entry, id sched.JobID) {
	x := &jobs[id]
	if x.group == sched.None {
		return
	}
	h := &g.list[x.group]
	i, last := int(x.pos), len(h.heap)-1
	moved := h.heap[last]
	h.heap = h.heap[:last]
	x.group = sched.None
	if i == last {
		return
	}
	h.heap[i] = moved
	jobs[moved].pos = int32(i)
	if !h.up(jobs, i) {
		h.down(jobs, i)
	}
}

// up moves the job at i towards the top and reports whether it moved.
func (h *group) up(jobs []entry, i int) bool {
	id, from := h.heap[i], i
	for i > 0 {
		p := (i - 1) / 4
		if !h.above(jobs, id, h.heap[p]) {
			break
		}
		h.heap[i] = h.heap[p]
		jobs[h.heap[i]].pos = int32(i)
		i = p
	}
	h.heap[i] = id
	jobs[id].pos = int32(i)
	return i != from
}

func (h *group) down(jobs []entry, i int) {
	id, n := h.heap[i], len(h.heap)
	for {
		best, end := -1, min(4*i+5, n)
		for c := 4*i + 1; c < end; c++ {
			if best < 0 || h.above(jobs, h.heap[c], h.heap[best]) {
				best = c
			}
		}
		if best < 0 || !h.above(jobs, h.heap[best], id) {
			break
		}
		h.heap[i] = h.heap[best]
		jobs[h.heap[i]].pos = int32(i)
		i = best
	}
	h.heap[i] = id
	jobs[id].pos = int32(i)
}
