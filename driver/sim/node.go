package sim

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/trainyard/trainyard/sched"
)

// poolState is what is rented from a pool.
type poolState struct {
	nodes   int32   // that have joined and are not released
	booting []int32 // numbers of the nodes asked for that have not joined yet, in order of being asked for
	last    int32   // number given last; they are never given again
}

// node returns the state of node id, a new one if another machine has taken its slot.
func (d *Driver) node(id sched.NodeID) *nodeState {
	for int(id) >= len(d.nodes) {
		d.nodes = append(d.nodes, nodeState{})
	}
	n := &d.nodes[id]
	if g := d.view.Nodes[id].Generation; g != n.generation {
		*n = nodeState{generation: g, boots: n.boots}
	}
	return n
}

// setNode puts a node to sleep, wakes it, drains or releases it. A node that is down hears nothing, and can be
// released.
func (d *Driver) setNode(a *sched.Action) {
	n := d.node(a.Node)
	down := n.state == sched.NodeDown
	if n.state == a.State && n.boot == 0 || down && a.State != sched.NodeGone || a.State == sched.NodeUp && n.boot > 0 {
		return
	}
	wake := cmp.Or(d.view.Nodes[a.Node].Spec.Wake, d.runtime.Boot)
	if a.State == sched.NodeUp && n.state == sched.NodeAsleep && wake > 0 {
		n.boots++
		n.boot = n.boots
		d.push(timed{at: d.now.Add(wake), kind: nodeReady, job: sched.JobID(a.Node), attempt: n.boot})
		return
	}
	e := sched.Event{Time: d.now, Kind: sched.NodeChanged, Node: a.Node, Code: int32(a.State)}
	if a.State == sched.NodeAsleep || a.State == sched.NodeGone {
		e.Kind = sched.NodeLeft
		d.soon = d.lose(a.Node, d.soon)
	}
	if pool := d.view.Nodes[a.Node].Spec.Pool; pool >= 0 && a.State == sched.NodeGone {
		d.pool(pool).nodes--
	}
	if down {
		d.down--
	}
	n.state, n.boot = a.State, 0
	d.soon = append(d.soon, e)
}

// wake ends a boot of a node that slept, unless it was called off.
func (d *Driver) wake(id sched.NodeID, boot int32) {
	if n := d.node(id); n.boot == boot {
		n.state, n.boot = sched.NodeUp, 0
		d.out = append(d.out, sched.Event{Time: d.now, Kind: sched.NodeChanged, Node: id, Code: int32(sched.NodeUp)})
	}
}

func (d *Driver) pool(id sched.PoolID) *poolState {
	for int(id) >= len(d.pools) {
		d.pools = append(d.pools, poolState{})
	}
	return &d.pools[id]
}

// rent has nodes of a pool boot until there are as many as wanted, or calls boots off, the latest first.
func (d *Driver) rent(a *sched.Action) {
	p := d.pool(a.Pool)
	for p.nodes+int32(len(p.booting)) < a.Count {
		p.last++
		p.booting = append(p.booting, p.last)
		d.push(timed{at: d.now.Add(d.view.Pools[a.Pool].Spec.Boot), kind: rented, job: sched.JobID(a.Pool),
			attempt: p.last})
	}
	p.booting = p.booting[:max(0, min(int32(len(p.booting)), a.Count-p.nodes))]
}

// join lets node number n of a pool join, unless its boot was called off.
func (d *Driver) join(id sched.PoolID, n int32) {
	p, spec := d.pool(id), &d.view.Pools[id].Spec
	i := slices.Index(p.booting, n)
	if i < 0 {
		return
	}
	p.booting = slices.Delete(p.booting, i, i+1)
	p.nodes++
	d.widest = max(d.widest, spec.GPUs)
	d.specs = append(d.specs, sched.NodeSpec{})
	node := &d.specs[len(d.specs)-1]
	if int(id) < len(d.cluster.Pools) {
		*node = d.cluster.Pools[id].Node
	}
	d.name = strconv.AppendInt(append(append(d.name[:0], spec.Name...), '-'), int64(n), 10)
	node.Name, node.Pool = string(d.name), id
	node.GPUs, node.Type, node.DollarsHr = spec.GPUs, spec.Type, spec.Price
	d.out = append(d.out, sched.Event{Time: d.now, Kind: sched.NodeJoined, NodeSpec: node})
}
