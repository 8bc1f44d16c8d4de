package provision

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Rent rents as many nodes as the demand needs beside what is owned, the cheapest per GPU first, and lets nodes go that have
// been idle for Keep and are not needed. A node with a job on it is never let go: a demand that falls waits for it to empty, or,
// with Move, has it emptied.
//
// Keep has the price of a boot in mind: renting again within the boot time gains nothing, and a node kept as long as a boot
// costs at most twice what knowing the future would (ski rental).
type Rent struct {
	idleness
	drain
	Demand Demand
	Keep   time.Duration // >= 0
	Most   int32         // nodes in all pools at most; 0 = what the pools allow
	// Stopped reports a hard stop: nothing is rented, and nothing kept, not even what a pool says is the least; nil = none.
	Stopped func() bool

	demand []int32
	pools  []sched.PoolID // cheapest per GPU first
	leave  []sched.NodeID
}

var (
	_ sched.Provisioner = (*Rent)(nil)
	_ sched.Memory      = (*Rent)(nil)
)

// Provision names the nodes that go and gives each pool its number.
func (r *Rent) Provision(v *sched.View, d *sched.Desired) {
	if len(v.Pools) == 0 {
		return
	}
	r.update(v, d)
	stopped := r.Stopped != nil && r.Stopped()
	if r.demand = r.Demand.Demand(v, r.demand); stopped {
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
		n = r.letGo(v, id, n, keep, d)
		left -= n
		if n != p.Target {
			d.Pools = append(d.Pools, sched.PoolTarget{Pool: id, Count: n})
		}
	}
}

// subtractOwned takes from the demand what nodes that are owned serve, first each type's own.
func (r *Rent) subtractOwned(v *sched.View) {
	any := len(r.demand) - 1
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.Spec.Pool != sched.None || !n.Open() {
			continue
		}
		gpus := int32(n.Spec.GPUs)
		own := min(gpus, r.demand[n.Spec.Type])
		r.demand[n.Spec.Type] -= own
		r.demand[any] = max(r.demand[any]-(gpus-own), 0)
	}
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

// letGo names the nodes of pool id beyond n that may go, those idle longest first, and returns how many are to be there then.
func (r *Rent) letGo(v *sched.View, id sched.PoolID, n int32, keep time.Duration, d *sched.Desired) int32 {
	here := int32(0)
	r.leave = r.leave[:0]
	for i := range v.Nodes {
		node := &v.Nodes[i]
		if node.Spec.Pool != id || !node.Joined() || node.Target == sched.NodeGone {
			continue
		}
		here++
		if since := r.since[i]; since != sched.Never {
			if due := since.Add(keep); due <= v.Now {
				r.leave = append(r.leave, sched.NodeID(i))
			} else if here > n || v.Pools[id].Target > n {
				d.WakeBy(due)
			}
		}
	}
	slices.SortStableFunc(r.leave, func(a, b sched.NodeID) int { return cmp.Compare(r.since[a], r.since[b]) })
	r.leave = r.leave[:min(len(r.leave), int(max(here-n, 0)))]
	for _, node := range r.leave {
		d.Nodes = append(d.Nodes, sched.NodeTarget{Node: node, State: sched.NodeGone})
	}
	here -= int32(len(r.leave))
	r.empty(v, id, here, n, d)
	return max(n, here)
}

// SaveRest appends since when pools have had a node too many, behind how many pools that are, then since when nodes have been idle.
func (r *Rent) SaveRest(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(r.extra)))
	for _, t := range r.extra {
		b = binary.LittleEndian.AppendUint64(b, uint64(t))
	}
	return r.idleness.SaveRest(b)
}

// LoadRest takes what SaveRest wrote.
func (r *Rent) LoadRest(b []byte) error {
	if len(b) < 8 || binary.LittleEndian.Uint64(b) > uint64(len(b)-8)/8 {
		return errCutShort
	}
	pools := binary.LittleEndian.Uint64(b)
	r.extra = r.extra[:0]
	for b = b[8:]; pools > 0; pools, b = pools-1, b[8:] {
		r.extra = append(r.extra, sched.Time(binary.LittleEndian.Uint64(b)))
	}
	return r.idleness.LoadRest(b)
}
