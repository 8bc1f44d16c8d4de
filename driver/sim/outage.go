package sim

import (
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

func (d *Driver) nextOutage() {
	at, node, isUp := d.outages.Next()
	d.outage = timed{at: at, job: sched.JobID(node)}
	if isUp {
		d.outage.kind = nodeReady
	}
}

// fail takes the node of the next outage away, with the attempts on it, or brings it back. Only a node that is there
// can fail: one that is asleep or released does not notice.
func (d *Driver) fail() {
	node, back := sched.NodeID(d.outage.job), d.outage.kind == nodeReady
	d.nextOutage()
	n := d.node(node)
	switch {
	case d.view.Nodes[node].Spec.Name != d.cluster.Nodes[node].Name: // it was released, and another took its slot
	case back && n.state == sched.NodeDown:
		d.down--
		n.state = sched.NodeUp
		d.out = append(d.out, sched.Event{Time: d.now, Kind: sched.NodeJoined, NodeSpec: &d.cluster.Nodes[node]})
	case !back && (n.state == sched.NodeUp || n.state == sched.NodeDraining):
		d.down++
		d.failed++
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
	for _, id := range d.live {
		gpus := d.state[id].gpus // in order
		if at, _ := slices.BinarySearch(gpus, first); at < len(gpus) && gpus[at] < end {
			lost = append(lost, id)
		}
	}
	slices.Sort(lost)
	for _, id := range lost {
		dst = d.end(id, sched.NodeLost, d.saved(id), dst)
	}
	return dst
}

// saved returns the work of job id at its last checkpoint. What was done since is reckoned at the present rate.
func (d *Driver) saved(id sched.JobID) time.Duration {
	j := &d.state[id]
	if j.phase != running {
		return j.done
	}
	since, lost := max(d.now.Sub(j.from), 0), time.Duration(0)
	if c := d.runtime.Checkpoint; c > 0 {
		lost = max(d.now.Sub(j.began), 0) % c
	}
	if lost <= since {
		return j.done + sched.ScaleDuration(since-lost, j.rate)
	}
	return max(j.before, j.done-sched.ScaleDuration(lost-since, j.rate))
}
