package sim

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/trainyard/trainyard/sched"
)

// machines is the truth about nodes, and about what is rented.
type machines struct {
	nodes   []nodeState // by NodeID
	pools   []poolState // by PoolID
	widest  int         // GPUs of the widest node there ever was
	down    int         // nodes that are away and will come back
	failed  int         // nodes that went away since an attempt last started
	joining []sched.NodeSpec
	name    []byte // scratch
}

type nodeState struct {
	state      sched.NodeState
	generation int32 // of the machine that state is about
	boot       int32 // number of the boot under way; 0: none
	boots      int32
}

// poolState is what is rented from a pool.
type poolState struct {
	nodes   int32   // that have joined and are not released
	booting []int32 // numbers of the nodes asked for that have not joined yet, in order of being asked for
	last    int32   // number given last; they are never given again
}

// node returns the state of node id, a new one if another machine, of the given generation, has taken its slot.
func (m *machines) node(id sched.NodeID, generation int32) *nodeState {
	for int(id) >= len(m.nodes) {
		m.nodes = append(m.nodes, nodeState{})
	}
	n := &m.nodes[id]
	if generation != n.generation {
		*n = nodeState{generation: generation, boots: n.boots}
	}
	return n
}

func (m *machines) pool(id sched.PoolID) *poolState {
	for int(id) >= len(m.pools) {
		m.pools = append(m.pools, poolState{})
	}
	return &m.pools[id]
}

// aim has as many nodes boot as are missing to want, and returns their numbers, or calls boots off, the latest first.
func (p *poolState) aim(want int32) (numbers []int32) {
	from := len(p.booting)
	for p.nodes+int32(len(p.booting)) < want {
		p.last++
		p.booting = append(p.booting, p.last)
	}
	numbers = p.booting[from:]
	p.booting = p.booting[:max(0, min(int32(len(p.booting)), want-p.nodes))]
	return numbers
}

// joined takes node number n off those that boot; ok is false if its boot was called off.
func (p *poolState) joined(n int32) (ok bool) {
	i := slices.Index(p.booting, n)
	if i < 0 {
		return false
	}
	p.booting = slices.Delete(p.booting, i, i+1)
	p.nodes++
	return true
}

// enter returns the specification of node number n of pool id, which joins: like is what nodes of the pool are like.
func (m *machines) enter(id sched.PoolID, n int32, pool *sched.PoolSpec, like sched.NodeSpec) *sched.NodeSpec {
	m.widest = max(m.widest, pool.GPUs)
	m.joining = append(m.joining, like)
	node := &m.joining[len(m.joining)-1]
	m.name = strconv.AppendInt(append(append(m.name[:0], pool.Name...), '-'), int64(n), 10)
	node.Name, node.Pool = string(m.name), id
	node.GPUs, node.Type, node.DollarsHr = pool.GPUs, pool.Type, pool.Price
	return node
}

func (d *Driver) node(id sched.NodeID) *nodeState {
	return d.machines.node(id, d.view.Nodes[id].Generation)
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
		d.queue.push(timed{at: d.now.Add(wake), kind: nodeReady, job: sched.JobID(a.Node), attempt: n.boot})
		return
	}
	e := sched.Event{Time: d.now, Kind: sched.NodeChanged, Node: a.Node, Code: int32(a.State)}
	if a.State == sched.NodeAsleep || a.State == sched.NodeGone {
		e.Kind = sched.NodeLeft
		d.soon = d.lose(a.Node, d.soon)
	}
	if pool := d.view.Nodes[a.Node].Spec.Pool; pool >= 0 && a.State == sched.NodeGone {
		d.machines.pool(pool).nodes--
	}
	if down {
		d.machines.down--
	}
	n.state, n.boot = a.State, 0
	d.soon = append(d.soon, e)
}

// wake ends a boot of a node that slept, unless it was called off.
func (d *Driver) wake(id sched.NodeID, boot int32) {
	if n := d.node(id); n.boot == boot {
		n.state, n.boot = sched.NodeUp, 0
		d.attempts.vain = 0
		d.out = append(d.out, sched.Event{Time: d.now, Kind: sched.NodeChanged, Node: id, Code: int32(sched.NodeUp)})
	}
}

// rent has nodes of a pool boot until there are as many as wanted, or calls boots off.
func (d *Driver) rent(a *sched.Action) {
	ready := d.now.Add(d.view.Pools[a.Pool].Spec.Boot)
	for _, n := range d.machines.pool(a.Pool).aim(a.Count) {
		d.queue.push(timed{at: ready, kind: rented, job: sched.JobID(a.Pool), attempt: n})
	}
}

// join lets node number n of a pool join, unless its boot was called off.
func (d *Driver) join(id sched.PoolID, n int32) {
	if !d.machines.pool(id).joined(n) {
		return
	}
	var like sched.NodeSpec
	if int(id) < len(d.cluster.Pools) {
		like = d.cluster.Pools[id].Node
	}
	d.attempts.vain = 0
	node := d.machines.enter(id, n, &d.view.Pools[id].Spec, like)
	d.out = append(d.out, sched.Event{Time: d.now, Kind: sched.NodeJoined, NodeSpec: node})
}
