package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// adopt takes over a run that is under way, as the view shows it: the simulation goes on from its instant. The first
// jobs of the trace are those of the view, which were done so much of their durations; the others are yet to arrive.
// What was injected, disturbed or due to fail up to that instant is past.
//
// Attempts that run go on from where the view says that they work; those that start or stop do so once the delays have
// passed since they were asked to. A boot under way starts again, for the view does not say since when it lasts. Where
// reports are noisy, those to come are drawn again.
func (d *Driver) adopt() ([]sched.Event, error) {
	v := d.view
	if n := len(v.Jobs); n > len(d.jobs) {
		return nil, fmt.Errorf("sim: a run of %d jobs, want a trace that starts with them; it has %d", n, len(d.jobs))
	}
	if i := len(v.Jobs); i < len(d.jobs) && d.jobs[i].Spec.Submit < v.Now {
		return nil, fmt.Errorf("sim: job %s is yet to arrive, at %v, want a time from %v on", d.jobs[i].Spec.Name,
			d.jobs[i].Spec.Submit, v.Now)
	}
	d.now, d.arrived = v.Now, len(v.Jobs)
	d.forgetPast()
	d.machines = machinesIn(v, d.machines.widest)
	phases := d.adoptJobs()
	for _, id := range phases[sched.Running] {
		d.adoptPace(id)
	}
	// From here on as Apply does: stops, then starts, then all else. What was only just ordered is answered at once.
	for _, id := range phases[sched.Stopping] {
		d.adoptStop(id)
	}
	for _, id := range phases[sched.Starting] {
		d.adoptStart(id)
	}
	d.adoptOrders()
	events := d.soon
	d.soon = nil
	return events, d.broken
}

// forgetPast skips what happened up to now.
func (d *Driver) forgetPast() {
	for len(d.inject) > 0 && d.inject[0].Time <= d.now {
		d.inject = d.inject[1:]
	}
	for d.disturb.next() <= d.now {
		d.disturb.apply() // no job works yet
	}
	for d.fails.at <= d.now {
		d.fails.next()
	}
}

// machinesIn returns the nodes and what is rented, as v shows them; no node of the cluster has more GPUs than widest.
func machinesIn(v *sched.View, widest int) machines {
	m := machines{nodes: make([]nodeState, len(v.Nodes)), widest: widest}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		m.nodes[i] = nodeState{state: n.State, generation: n.Generation}
		m.widest = max(m.widest, n.Spec.GPUs)
		if n.State == sched.NodeDown {
			m.down++
		}
		if p := v.PoolOf(n); p != nil {
			pool := m.pool(n.Spec.Pool)
			pool.nodes, pool.last = p.Nodes, max(pool.last, numberIn(n.Spec.Name, p.Spec.Name))
		}
	}
	return m
}

// numberIn returns the number of a node named after its pool, see join; 0 if it is named otherwise.
func numberIn(node, pool string) int32 {
	digits, ok := strings.CutPrefix(node, pool+"-")
	n, err := strconv.ParseInt(digits, 10, 32)
	if !ok || err != nil {
		return 0
	}
	return int32(n)
}

// adoptJobs takes what the view shows of the jobs and returns those with an attempt, by its state, in the order in
// which something last happened to them.
func (d *Driver) adoptJobs() map[sched.AttemptState][]sched.JobID {
	phases := make(map[sched.AttemptState][]sched.JobID)
	for i := range d.view.Jobs {
		id, j, s := sched.JobID(i), &d.view.Jobs[i], &d.attempts.state[i]
		s.done, s.before, s.attempt, s.watched, s.epoch = j.Work, j.Work, j.Attempts, j.Watched, j.Epoch+1
		if j.FirstStart >= 0 {
			s.starts = 1
		}
		switch {
		case j.State == sched.Done && (j.Outcome == sched.Finished || j.Outcome == sched.Cancelled):
			d.attempts.over++
		case j.HoldsDevices():
			s.gpus, s.config = j.GPUs, j.Live
			d.attempts.add(id)
			phases[j.Attempt] = append(phases[j.Attempt], id)
		}
		if j.Attempt == sched.Running {
			d.adoptWork(id)
		}
	}
	for _, ids := range phases {
		slices.SortStableFunc(ids, func(a, b sched.JobID) int {
			return cmp.Compare(d.view.Jobs[a].Settled, d.view.Jobs[b].Settled)
		})
	}
	return phases
}

// adoptWork lets the attempt of job id run as last said. What it had done when it started follows from the rate it has.
func (d *Driver) adoptWork(id sched.JobID) {
	j, s := &d.view.Jobs[id], &d.attempts.state[id]
	s.phase, s.began, s.from, s.reported, s.reportedAt = running, j.LastStart, j.WorkFrom, j.Work, j.WorkFrom
	if j.FirstStart < j.LastStart || d.runtime.RestartAtFirst {
		s.began = j.LastStart.Add(d.runtime.restart(&d.jobs[id]))
	}
	s.before = max(0, j.Work-sched.ScaleDuration(max(0, j.WorkFrom.Sub(s.began)), j.Rate))
	if d.runtime.Interference != nil {
		d.tenants.seat(id, s.gpus)
	}
}

// adoptPace queues what is to come of job id, which runs. If it is not as fast as was reported last, that is reported.
func (d *Driver) adoptPace(id sched.JobID) {
	reported, s := d.view.Jobs[id].Rate, &d.attempts.state[id]
	if d.setPace(id); s.rate != reported && d.runtime.Report == 0 {
		s.rate = reported
		d.soon = d.repace(id, d.soon)
	}
	if d.runtime.Report > 0 {
		d.queue.push(timed{at: max(s.reportedAt.Add(d.runtime.Report), d.now), kind: report, job: id,
			attempt: s.attempt})
	}
	if s.watched {
		d.queueEpoch(id)
	}
}

// adoptStop goes on stopping job id, whose work has stood still since it was asked to.
func (d *Driver) adoptStop(id sched.JobID) {
	j, s := &d.view.Jobs[id], &d.attempts.state[id]
	s.phase, s.stopping = stopping, sched.Preempted
	if j.Cancel {
		s.stopping = sched.Cancelled
	}
	if d.runtime.Penalty != nil && s.stopping == sched.Preempted {
		s.done -= d.runtime.Penalty(len(s.gpus))
	}
	if at := j.WorkFrom.Add(d.runtime.StopDelay); at > d.now {
		d.queue.push(timed{at: at, kind: gone, job: id, attempt: s.attempt})
		return
	}
	d.soon = d.end(id, s.stopping, s.done, d.soon)
}

// adoptStart goes on starting job id, to which nothing has happened since it was asked to.
func (d *Driver) adoptStart(id sched.JobID) {
	s := &d.attempts.state[id]
	s.phase = starting
	if at := d.view.Jobs[id].Settled.Add(d.runtime.StartDelay); at > d.now {
		d.queue.push(timed{at: at, kind: up, job: id, attempt: s.attempt})
		return
	}
	d.soon = d.begin(id, d.soon)
}

// adoptOrders carries out what nodes and pools were reported and have not answered.
func (d *Driver) adoptOrders() {
	for i := range d.view.Nodes {
		if n := &d.view.Nodes[i]; n.Awaited {
			d.setNode(&sched.Action{Kind: sched.SetNode, Job: sched.None, Node: sched.NodeID(i), State: n.Ordered})
		}
	}
	for i := range d.view.Pools {
		if p := &d.view.Pools[i]; p.Ordered != p.Nodes {
			d.rent(&sched.Action{Kind: sched.Rent, Job: sched.None, Pool: sched.PoolID(i), Count: p.Ordered})
		}
	}
}
