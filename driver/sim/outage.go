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

// fail takes the node of the next outage away, with the attempts on it, or brings it back.
func (d *Driver) fail() {
	node := sched.NodeID(d.outage.job)
	if d.outage.kind == nodeReady {
		d.down--
		d.nodes[node].state = sched.NodeUp
		d.out = append(d.out, sched.Event{Time: d.now, Kind: sched.NodeJoined, NodeSpec: &d.cluster.Nodes[node]})
		d.nextOutage()
		return
	}
	d.down++
	d.nodes[node].state = sched.NodeDown
	var lost []sched.JobID
	for _, id := range d.live {
		if slices.ContainsFunc(d.state[id].gpus, func(g sched.GPUID) bool { return d.nodeOf[g] == node }) {
			lost = append(lost, id)
		}
	}
	slices.Sort(lost)
	for _, id := range lost {
		d.out = append(d.out, d.end(id, sched.NodeLost, d.saved(id)))
	}
	d.out = append(d.out, sched.Event{Time: d.now, Kind: sched.NodeLeft, Node: node, Code: int32(sched.NodeDown)})
	d.nextOutage()
}

// saved returns the work of job id at its last checkpoint.
func (d *Driver) saved(id sched.JobID) time.Duration {
	j := &d.state[id]
	if j.phase != running {
		return j.done
	}
	run := max(d.now.Sub(j.from), 0)
	if c := d.runtime.Checkpoint; c > 0 {
		run -= run % c
	}
	return j.done + sched.ScaleDuration(run, j.rate)
}
