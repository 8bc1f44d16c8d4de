package provision

import (
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// emptying empties nodes. Jobs end where they are, so that after a while many nodes are used a little. Where all would
// fit on fewer nodes, those on the node that is emptied most cheaply are to be placed elsewhere. That waits until the
// nodes too many have cost as much as the moves will, as a skier rents until that has cost as much as skis: it costs at
// most twice what knowing the future would.
type emptying struct {
	// Move is what it costs to move job j, in GPU-seconds, >= 0, +Inf = it is not to be moved; nil = nodes empty by
	// themselves.
	Move func(v *sched.View, j sched.JobID) float64

	extra []sched.Time // by pool: since when it has had a node too many; Never = it has none
	jobs  Present
	at    []load // by node; scratch
}

// load is what is on a node.
type load struct {
	free  int32 // GPUs; 0 on nodes that are not for new jobs
	cost  float64
	jobs  []int32 // widths
	whole bool    // no job is on other nodes as well
}

// reopen has up to n busy nodes of pool id that drain take jobs again: they are needed after all. It returns how many.
func (r *emptying) reopen(v *sched.View, id sched.PoolID, n int32, d *sched.Desired) (back int32) {
	for i := 0; i < len(v.Nodes) && back < n; i++ {
		if node := &v.Nodes[i]; node.Spec.Pool == id && node.Joined() && node.Target == sched.NodeDraining &&
			node.Busy > 0 {
			d.Nodes = append(d.Nodes, sched.NodeTarget{Node: sched.NodeID(i), State: sched.NodeUp})
			back++
		}
	}
	return back
}

// empty asks for a node of pool id to be emptied, if there are more than are needed.
func (r *emptying) empty(v *sched.View, id sched.PoolID, more int32, d *sched.Desired) {
	for int(id) >= len(r.extra) {
		r.extra = append(r.extra, sched.Never)
	}
	switch {
	case more <= 0:
		r.extra[id] = sched.Never
		return
	case r.extra[id] == sched.Never:
		r.extra[id] = v.Now
	}
	if len(d.Jobs) > 0 { // the View does not know who will be where
		d.WakeBy(v.Now.Add(time.Second))
		return
	}
	node, cost := r.cheapest(v, id)
	if node == sched.None {
		return
	}
	if due := r.extra[id].Add(sched.Seconds(cost / float64(v.Pools[id].Spec.GPUs))); due > v.Now {
		d.WakeBy(due)
		return
	}
	r.extra[id] = sched.Never
	d.Nodes = append(d.Nodes, sched.NodeTarget{Node: node, State: sched.NodeDraining})
}

// cheapest returns the node of pool id whose jobs can all be moved at the least cost, the lowest of several; None if
// there is none.
func (r *emptying) cheapest(v *sched.View, id sched.PoolID) (node sched.NodeID, cost float64) {
	r.look(v, id)
	node, cost = sched.None, math.Inf(1)
	for i := range r.at {
		if at := &r.at[i]; at.whole && len(at.jobs) > 0 && at.cost < cost && r.fits(i) {
			node, cost = sched.NodeID(i), at.cost
		}
	}
	return node, cost
}

// look takes stock of the open nodes of pool id.
func (r *emptying) look(v *sched.View, id sched.PoolID) {
	for len(r.at) < len(v.Nodes) {
		r.at = append(r.at, load{})
	}
	for i := range r.at {
		at, node := &r.at[i], &v.Nodes[i]
		*at = load{jobs: at.jobs[:0], whole: node.Spec.Pool == id && node.Open()}
		if at.whole {
			at.free = int32(node.Spec.GPUs)
		}
	}
	for _, j := range r.jobs.Jobs(v) {
		target := v.Jobs[j].Target
		if len(target) == 0 {
			continue
		}
		first, last := v.GPUs[target[0]].Node, v.GPUs[target[len(target)-1]].Node
		for _, g := range target {
			at := &r.at[v.GPUs[g].Node]
			at.free = max(at.free-1, 0)
			at.whole = at.whole && first == last
		}
		if at := &r.at[first]; at.whole {
			at.jobs = append(at.jobs, int32(len(target)))
			at.cost += r.Move(v, j)
		}
	}
}

// fits reports whether the jobs of node i fit on other nodes, each on one.
func (r *emptying) fits(i int) bool {
	slices.SortFunc(r.at[i].jobs, func(a, b int32) int { return int(b - a) })
	taken := make([]int32, len(r.at))
	taken[i] = r.at[i].free
	for _, width := range r.at[i].jobs {
		best := -1
		for n := range r.at {
			if left := r.at[n].free - taken[n]; left >= width && (best < 0 || left < r.at[best].free-taken[best]) {
				best = n
			}
		}
		if best < 0 {
			return false
		}
		taken[best] += width
	}
	return true
}
