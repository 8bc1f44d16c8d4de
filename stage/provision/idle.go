package provision

import (
	"fmt"
	"math"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/sched"
)

// idleness remembers since when nodes have had nothing to do.
type idleness struct {
	sched.ByName

	since []sched.Time // by NodeID; Never = it is busy
	mark  []bool       // by GPU: to be held by what d gives; scratch
	// here lists the nodes that have joined, in order: where nodes are rented most slots are of nodes that are gone. It
	// follows from the View, as owned and types do: all are made again when a node may have joined.
	here   []sched.NodeID
	owned  bool // some of here are not rented
	types  int  // of GPUs, among nodes and pools
	listed bool // no node has joined since here was made, no type come
}

// Observe hears of nodes and pools that come. Those that go are found gone.
func (i *idleness) Observe(_ *sched.View, e *sched.Event) {
	if e.Kind == sched.NodeJoined || e.Kind == sched.NodeChanged || e.Kind == sched.PoolChanged {
		i.listed = false
	}
}

// list makes here and types again.
func (i *idleness) list(v *sched.View) {
	i.here, i.owned, i.types, i.listed = i.here[:0], false, 0, true
	for n := range v.Nodes {
		node := &v.Nodes[n]
		if node.Joined() {
			i.here = append(i.here, sched.NodeID(n))
			i.owned = i.owned || node.Spec.Pool == sched.None
		}
		i.types = max(i.types, int(node.Spec.Type)+1)
	}
	for p := range v.Pools {
		i.types = max(i.types, int(v.Pools[p].Spec.Type)+1)
	}
}

// update looks at all nodes that have joined. A node is busy while a job is on one of its GPUs, or is to be.
func (i *idleness) update(v *sched.View, d *sched.Desired) {
	for len(i.mark) < len(v.GPUs) {
		i.mark = append(i.mark, false)
	}
	for _, g := range d.GPUs {
		i.mark[g] = true
	}
	for len(i.since) < len(v.Nodes) {
		i.since = append(i.since, v.Now)
	}
	if !i.listed {
		i.list(v)
	}
	here := i.here[:0]
	for _, n := range i.here {
		node := &v.Nodes[n]
		if !node.Joined() {
			continue
		}
		here = append(here, n)
		switch {
		case i.busy(v, node):
			i.since[n] = sched.Never
		case i.since[n] == sched.Never:
			i.since[n] = v.Now
		case node.Since > i.since[n]: // another machine has the slot
			i.since[n] = node.Since
		}
	}
	i.here = here
	for _, g := range d.GPUs {
		i.mark[g] = false
	}
}

func (i *idleness) busy(v *sched.View, n *sched.Node) bool {
	if n.Busy > 0 {
		return true
	}
	for g := n.First; g < n.First+sched.GPUID(n.Spec.GPUs); g++ {
		if i.mark[g] || v.GPUs[g].Targets > 0 {
			return true
		}
	}
	return false
}

// Format names what is saved.
func (*idleness) Format() string { return "idle/1" }

// SaveJob appends nothing.
func (*idleness) SaveJob(_ sched.JobID, b []byte) []byte { return b }

// LoadJob takes nothing.
func (*idleness) LoadJob(sched.JobID, []byte) error { return nil }

// SaveRest appends since when each node has been idle.
func (i *idleness) SaveRest(b []byte) []byte {
	for _, t := range i.since {
		b = memo.Int(b, int64(t))
	}
	return b
}

// LoadRest takes what SaveRest wrote.
func (i *idleness) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	i.since, i.listed = i.since[:0], false
	for r.Len() > 0 && r.Err() == nil {
		i.since = append(i.since, sched.Time(r.Int(math.MinInt64, math.MaxInt64)))
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("provision: memory of idle nodes: %w", err)
	}
	return nil
}
