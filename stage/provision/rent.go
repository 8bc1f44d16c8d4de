package provision

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/sched"
)

// Rent rents as many nodes as the demand needs in addition to what is owned, the cheapest per GPU first, and lets nodes
// go that have been idle for Keep and are not needed. A node with a job on it is never let go: a demand that falls
// waits for it to empty, or, with Drain, has the jobs of the emptiest nodes placed elsewhere. A node that drains serves
// no demand, and goes as soon as it is empty. With Move, nodes are emptied only where that is worth it.
//
// Keep has the price of a boot in mind: renting again within the boot time gains nothing, and a node kept as long as a
// boot costs at most twice what knowing the future would (ski rental).
type Rent struct {
	idleness
	emptying
	Demand Demand
	Keep   time.Duration // >= 0
	Most   int32         // nodes in all pools at most; 0 = what the pools allow
	Drain  bool          // nodes that are not needed take no jobs any more, although some are on them
	// Stopped reports a hard stop: nothing is rented, and nothing kept, not even what a pool says is the least; nil =
	// none.
	Stopped func() bool

	demand []int32
	pools  []sched.PoolID // cheapest per GPU first
	leave  []sched.NodeID
}

var (
	_ sched.Provisioner = (*Rent)(nil)
	_ sched.Memory      = (*Rent)(nil)
	_ sched.Observer    = (*Rent)(nil)
)

// Provision names the nodes that go and gives each pool its number.
func (r *Rent) Provision(v *sched.View, d *sched.Desired) {
	if len(v.Pools) == 0 {
		return
	}
	r.update(v, d)
	stopped := r.Stopped != nil && r.Stopped()
	r.demand = append(r.demand[:0], make([]int32, r.types+1)...)
	if r.Demand.Demand(v, r.demand); stopped {
		clear(r.demand)
	}
	r.subtractOwned(v)
	r.byPrice(v)
	left := r.Most
	for _, id := range r.pools {
		p := &v.Pools[id]
		n := r.nodesFor(p)
		if r.Most > 0 {
			n = max(min(n, left), 0)
		}
		keep := r.Keep
		if n = min(max(n, p.Spec.Min), p.Spec.Max); stopped {
			n, keep = 0, 0
		}
		if r.Drain {
			r.drain(v, id, n, d)
		}
		n = r.letGo(v, id, n, keep, d)
		left -= n
		if n != p.Target {
			d.Pools = append(d.Pools, sched.PoolTarget{Pool: id, Count: n})
		}
	}
}

// subtractOwned takes from the demand what nodes that are owned serve, first each type's own.
func (r *Rent) subtractOwned(v *sched.View) {
	if !r.owned {
		return
	}
	any := len(r.demand) - 1
	for _, id := range r.here {
		n := &v.Nodes[id]
		if n.Spec.Pool != sched.None || !n.Open() {
			continue
		}
		gpus := serving(v, n)
		own := min(gpus, r.demand[n.Spec.Type])
		r.demand[n.Spec.Type] -= own
		r.demand[any] = max(r.demand[any]-(gpus-own), 0)
	}
}

// serving returns how many GPUs of a node serve jobs, or can.
func serving(v *sched.View, n *sched.Node) (gpus int32) {
	for g := n.First; g < n.First+sched.GPUID(n.Spec.GPUs); g++ {
		if v.GPUs[g].Targets > 0 || v.Usable(g) {
			gpus++
		}
	}
	return gpus
}

// byPrice orders the pools by price per GPU, then number.
func (r *Rent) byPrice(v *sched.View) {
	r.pools = r.pools[:0]
	for i := range v.Pools {
		r.pools = append(r.pools, sched.PoolID(i))
	}
	slices.SortStableFunc(r.pools, func(a, b sched.PoolID) int {
		x, y := &v.Pools[a], &v.Pools[b]
		return cmp.Compare(float64(x.Price)/float64(x.Spec.GPUs), float64(y.Price)/float64(y.Spec.GPUs))
	})
}

// nodesFor takes from the demand what nodes of p can serve, and returns how many that needs.
func (r *Rent) nodesFor(p *sched.Pool) int32 {
	any, size := len(r.demand)-1, int32(p.Spec.GPUs)
	n := min((r.demand[p.Spec.Type]+r.demand[any]+size-1)/size, p.Spec.Max)
	room := n * size
	own := min(room, r.demand[p.Spec.Type])
	r.demand[p.Spec.Type] -= own
	r.demand[any] = max(r.demand[any]-(room-own), 0)
	return n
}

// letGo names the nodes of pool id beyond n that may go, those with the fewest GPUs that can serve first, then those
// idle longest, and those that drained. It returns how many are to be there then: one that serves no one, such as one
// that does not answer or that someone has cordoned, has another rented in its place.
func (r *Rent) letGo(v *sched.View, id sched.PoolID, n int32, keep time.Duration, d *sched.Desired) int32 {
	here, dead, draining := int32(0), int32(0), int32(0)
	r.leave = r.leave[:0]
	for _, i := range r.here {
		node, since := &v.Nodes[i], r.since[i]
		switch {
		case node.Spec.Pool != id || node.Target == sched.NodeGone:
		case node.Target != sched.NodeDraining:
			if r.isDead(v, i) {
				dead++
			} else {
				here++
			}
			if due := since.Add(keep); due <= v.Now {
				r.leave = append(r.leave, i)
			} else if since != sched.Never && (here+dead > n || v.Pools[id].Target > n) {
				d.WakeBy(due)
			}
		case since == sched.Never:
			draining++
		default:
			d.Nodes = append(d.Nodes, sched.NodeTarget{Node: i, State: sched.NodeGone})
		}
	}
	slices.SortStableFunc(r.leave, func(a, b sched.NodeID) int {
		return cmp.Or(cmp.Compare(serving(v, &v.Nodes[a]), serving(v, &v.Nodes[b])),
			cmp.Compare(r.since[a], r.since[b]))
	})
	r.leave = r.leave[:min(len(r.leave), int(max(here+dead-n, 0)))]
	for _, node := range r.leave {
		d.Nodes = append(d.Nodes, sched.NodeTarget{Node: node, State: sched.NodeGone})
		if r.isDead(v, node) {
			dead--
		} else {
			here--
		}
	}
	if r.Move != nil {
		back := r.reopen(v, id, min(draining, n-here), d)
		here, draining = here+back, draining-back
		r.empty(v, id, here-n, d)
	}
	return min(max(n, here)+dead+draining, v.Pools[id].Spec.Max)
}

// isDead reports whether a node that has joined has no job and can take none.
func (r *Rent) isDead(v *sched.View, id sched.NodeID) bool {
	return r.since[id] != sched.Never && serving(v, &v.Nodes[id]) == 0
}

// drain has the emptiest busy nodes of pool id beyond n take no more jobs, those that joined last first. Idle ones go
// anyway.
func (r *Rent) drain(v *sched.View, id sched.PoolID, n int32, d *sched.Desired) {
	here := int32(0)
	r.leave = r.leave[:0]
	for _, i := range r.here {
		if node := &v.Nodes[i]; node.Spec.Pool == id && node.Open() {
			here++
			if r.since[i] == sched.Never {
				r.leave = append(r.leave, i)
			} else {
				n++ // it is counted as one that has gone
			}
		}
	}
	slices.SortStableFunc(r.leave, func(a, b sched.NodeID) int {
		return cmp.Or(cmp.Compare(wantedOn(v, a), wantedOn(v, b)), cmp.Compare(b, a))
	})
	for _, node := range r.leave[:min(len(r.leave), int(max(here-n, 0)))] {
		d.Nodes = append(d.Nodes, sched.NodeTarget{Node: node, State: sched.NodeDraining})
	}
}

// wantedOn returns how many GPUs of a node jobs are to hold.
func wantedOn(v *sched.View, id sched.NodeID) (gpus int) {
	node := &v.Nodes[id]
	for _, g := range v.GPUs[node.First : node.First+sched.GPUID(node.Spec.GPUs)] {
		if g.Targets > 0 {
			gpus++
		}
	}
	return gpus
}

// Format names what is saved.
func (*Rent) Format() string { return "rent/1" }

// SaveRest appends since when pools have had a node too many, behind how many pools that are, then since when nodes
// have been idle.
func (r *Rent) SaveRest(b []byte) []byte {
	b = memo.Uint(b, uint64(len(r.extra)))
	for _, t := range r.extra {
		b = memo.Int(b, int64(t))
	}
	return r.idleness.SaveRest(b)
}

// LoadRest takes what SaveRest wrote.
func (r *Rent) LoadRest(b []byte) error {
	m := memo.NewReader(b)
	r.extra = r.extra[:0]
	for range m.Count(1) {
		r.extra = append(r.extra, sched.Time(m.Int(math.MinInt64, math.MaxInt64)))
	}
	rest := m.Rest()
	if err := m.End(); err != nil {
		return fmt.Errorf("provision: memory of pools: %w", err)
	}
	return r.idleness.LoadRest(rest)
}
