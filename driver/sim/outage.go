package sim

import (
	"slices"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/sched"
)

// failures is when nodes of the cluster fail and come back, one time after another.
type failures struct {
	outages *cluster.Outages
	at      sched.Time // of the next one
	node    sched.NodeID
	back    bool // it comes back
}

// next goes on to the next outage or repair.
func (f *failures) next() {
	at, node, back := f.outages.Next()
	f.at, f.node, f.back = at, sched.NodeID(node), back
}

// fail takes the node of the next outage away, with the attempts on it, or brings it back. Only a node that is there
// can fail: one that is asleep or released does not notice.
func (d *Driver) fail() {
	node, back := d.fails.node, d.fails.back
	d.fails.next()
	n := d.node(node)
	switch {
	case d.view.Nodes[node].Spec.Name != d.cluster.Nodes[node].Name: // it was released, and another took its slot
	case back && n.state == sched.NodeDown:
		d.machines.down--
		d.attempts.vain = 0
		n.state = sched.NodeUp
		d.out = append(d.out, sched.Event{Time: d.now, Kind: sched.NodeJoined, NodeSpec: &d.cluster.Nodes[node]})
	case !back && (n.state == sched.NodeUp || n.state == sched.NodeDraining):
		d.machines.down++
		d.machines.failed++
		n.state = sched.NodeDown
		d.out = d.lose(node, d.out)
		d.out = append(d.out, sched.Event{Time: d.now, Kind: sched.NodeLeft, Node: node, Code: int32(sched.NodeDown)})
	}
}

// lose ends the attempts on a node that is leaving and appends their events to dst.
func (d *Driver) lose(node sched.NodeID, dst []sched.Event) []sched.Event {
	var lost []sched.JobID
	first := d.view.Nodes[node].First
	end := first + sched.GPUID(d.view.Nodes[node].Spec.GPUs)
	for _, id := range d.attempts.live {
		gpus := d.attempts.state[id].gpus // in order
		if at, _ := slices.BinarySearch(gpus, first); at < len(gpus) && gpus[at] < end {
			lost = append(lost, id)
		}
	}
	slices.Sort(lost)
	for _, id := range lost {
		dst = d.end(id, sched.NodeLost, d.attempts.state[id].saved(d.now, d.runtime.Checkpoint), dst)
	}
	return dst
}
