package cluster

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Failures says how nodes fail: each on its own, after an up time drawn from an exponential distribution, and for a
// fixed time. The zero value means that nodes never fail.
type Failures struct {
	MTBF   time.Duration // mean time a node stays up between two outages; <= 0 = nodes never fail
	Repair time.Duration // how long each outage lasts, always the same; 0 = back at the same instant
	Seed   uint64        // equal seeds give equal outages
}

// Outages is the stream of moments at which nodes go down and come back, in order of time. Each node has a random
// source of its own, seeded by Failures.Seed and its number, so that its outages do not depend on how many other
// nodes there are. All nodes are up at time 0. It is not safe for use by several goroutines.
type Outages struct {
	mean   float64 // ns
	repair time.Duration
	nodes  []outage
	heap   []int32 // nodes by their next event, the earliest first
}

// outage is a node and its next event.
type outage struct {
	rng rand.PCG
	at  sched.Time
	up  bool
}

// NewOutages returns the stream of outages of nodes 0..nodes-1. It is empty if f.MTBF is not positive, and otherwise
// infinite.
func NewOutages(f Failures, nodes int) *Outages {
	if f.MTBF <= 0 {
		nodes = 0
	}
	o := &Outages{mean: float64(f.MTBF), repair: max(f.Repair, 0), nodes: make([]outage, nodes),
		heap: make([]int32, nodes)}
	for i := range o.nodes {
		n := &o.nodes[i]
		n.rng.Seed(f.Seed, uint64(i))
		n.at = sched.Time(o.upTime(n))
		o.heap[i] = int32(i)
	}
	for i := nodes/2 - 1; i >= 0; i-- {
		o.sink(i)
	}
	return o
}

// Next returns the next event: at time at, node goes down, or comes back if up. Events of one instant come in order of
// the node; a node that goes down and comes back at one instant does so in that order. Next returns sched.Never,
// sched.None and false if nothing ever happens again.
func (o *Outages) Next() (at sched.Time, node int, up bool) {
	if len(o.heap) == 0 || o.nodes[o.heap[0]].at == sched.Never {
		return sched.Never, sched.None, false
	}
	node = int(o.heap[0])
	n := &o.nodes[node]
	at, up = n.at, n.up
	if up {
		n.at = at.Add(o.upTime(n))
	} else {
		n.at = at.Add(o.repair)
	}
	n.up = !up
	o.sink(0)
	return at, node, up
}

// upTime draws an up time of at least 1 ns by inversion, which unlike rand.ExpFloat64 asks no function whose last bit
// depends on the processor.
func (o *Outages) upTime(n *outage) time.Duration {
	u := float64(n.rng.Uint64()>>11) * 0x1p-53 // [0, 1), exact
	ns := math.Round(-math.Log(1-u) * o.mean)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(max(ns, 1))
}

// sink lets the node at place i of the heap sink to where it belongs.
func (o *Outages) sink(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(o.heap); c++ {
			if o.before(o.heap[c], o.heap[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		o.heap[i], o.heap[least] = o.heap[least], o.heap[i]
		i = least
	}
}

// before orders nodes by their next event, then by number.
func (o *Outages) before(a, b int32) bool {
	x, y := o.nodes[a].at, o.nodes[b].at
	return x < y || x == y && a < b
}
