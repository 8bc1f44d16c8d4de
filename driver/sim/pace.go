package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trainyard/trainyard/internal/inputfile"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// pace returns the work that job id does per time as things are, and the work at which that changes by itself, 0 if it
// does not.
func (d *Driver) pace(id sched.JobID) (rate float64, until time.Duration) {
	j, t, r := &d.attempts.state[id], &d.jobs[id], &d.runtime
	if r.Speed != nil || r.OnType != nil || r.Slowdown != nil {
		d.placement = placementOf(d.placement[:0], d.view, j.gpus)
	}
	until = -1
	if r.OnType != nil {
		rate, until = r.slowest(d.view, t, j, d.placement)
	} else if r.Speed != nil {
		rate, until = r.Speed(t, j.config, d.placement, j.done)
	}
	if until < 0 {
		rate, until = float64(len(j.gpus))/float64(t.Spec.GPUs.Want), 0
	}
	if r.Capped != nil && j.config.Cap > 0 {
		rate *= r.Capped(t, j.config.Cap)
	}
	slow := 1.0
	if r.Slowdown != nil {
		slow = r.Slowdown(d.view, t, j.gpus, len(d.placement), (len(j.gpus)+d.machines.widest-1)/d.machines.widest)
	}
	if r.Interference != nil {
		slow *= d.tenants.interference(id, j.gpus, d.jobs, r.Interference)
	}
	if len(d.disturb.factor) > 0 {
		slow *= d.disturb.worst(j.gpus)
	}
	if rate /= slow; !(rate > 0) || math.IsInf(rate, 0) {
		d.broken = inputfile.WrongAsk(fmt.Errorf("sim: job %s cannot run on %d GPUs of %d nodes with batch %d: it "+
			"would do %v work per time", t.Spec.Name, len(j.gpus), len(d.placement), j.config.Batch, rate))
		return 1, 0
	}
	return rate, until
}

// slowest returns the least speed of a job on its placement over the types of its GPUs.
func (r *Runtime) slowest(v *sched.View, t *trace.Job, j *jobState, placement []int) (rate float64,
	until time.Duration) {
	last := sched.TypeID(0)
	for i, g := range j.gpus { // in order, so the GPUs of a node are neighbours
		on := v.Nodes[v.GPUs[g].Node].Spec.Type
		if i > 0 && on == last {
			continue
		}
		x, end := r.OnType(t, on, j.config, placement, j.done)
		if i == 0 || x < rate {
			rate, until = x, end
		}
		last = on
	}
	return rate, until
}

// placementOf appends to dst the number of GPUs of a set on each of its nodes.
func placementOf(dst []int, v *sched.View, gpus []sched.GPUID) []int {
	for len(gpus) > 0 {
		k := v.OnNode(gpus)
		dst, gpus = append(dst, k), gpus[k:]
	}
	return dst
}

// setPace gives job id, whose work is settled, its rate, and queues the end of its work or the next change of its rate.
func (d *Driver) setPace(id sched.JobID) {
	j, t := &d.attempts.state[id], &d.jobs[id]
	rate, until := d.pace(id)
	j.rate = rate
	j.pace++
	next := timed{kind: workDone, job: id, attempt: j.attempt, number: j.pace}
	work := t.Duration
	if until > j.done && until < work {
		next.kind, work = paceEnd, until
	}
	next.at = max(j.from.Add(untilDone(work-j.done, rate)), d.now)
	d.queue.push(next)
}

// repace settles the work of job id, which runs, and gives it the rate that it has now. If changes are reported, and it
// changed, it appends the event.
func (d *Driver) repace(id sched.JobID, dst []sched.Event) []sched.Event {
	j := &d.attempts.state[id]
	was := j.rate
	j.done, j.from = j.workAt(d.now), max(j.from, d.now)
	d.setPace(id)
	if j.rate == was {
		return dst
	}
	if j.watched {
		d.queueEpoch(id)
	}
	if d.runtime.Report > 0 {
		return dst
	}
	return append(dst, sched.Event{Time: d.now, Kind: sched.Progressed, Job: id, Attempt: j.attempt, Work: j.done,
		WorkFrom: j.from, Rate: j.rate})
}

// enter counts job id, which starts to run, on its GPUs, and slows those down that it meets there.
func (d *Driver) enter(id sched.JobID, dst []sched.Event) []sched.Event {
	if d.runtime.Interference == nil {
		return dst
	}
	d.tenants.seat(id, d.attempts.state[id].gpus)
	return d.repaceAround(id, dst)
}

// leave takes job id, which runs no longer, from its GPUs, and speeds up those that it leaves behind. A job that has
// left before is not counted there.
func (d *Driver) leave(id sched.JobID, dst []sched.Event) []sched.Event {
	if d.runtime.Interference == nil || d.attempts.state[id].phase != running {
		return dst
	}
	d.tenants.unseat(id, d.attempts.state[id].gpus)
	return d.repaceAround(id, dst)
}

// repaceAround gives all that work next to job id, or did, their new rates, in order of their ids.
func (d *Driver) repaceAround(id sched.JobID, dst []sched.Event) []sched.Event {
	d.struck = d.tenants.around(d.struck[:0], id, d.attempts.state[id].gpus)
	for _, o := range d.struck {
		dst = d.repace(o, dst)
	}
	return dst
}

// disrupt makes the next change of Runtime.Changes, and gives the jobs that work on its GPUs their new rates.
func (d *Driver) disrupt() {
	gpus := d.disturb.apply()
	d.struck = d.struck[:0]
	for _, id := range d.attempts.live {
		j := &d.attempts.state[id]
		if j.phase == running && slices.ContainsFunc(j.gpus, func(g sched.GPUID) bool {
			return slices.Contains(gpus,
				g)
		}) {
			d.struck = append(d.struck, id)
		}
	}
	slices.Sort(d.struck)
	for _, id := range d.struck {
		d.out = d.repace(id, d.out)
	}
}

// cap exchanges the power cap of an attempt that lives.
func (d *Driver) cap(a *sched.Action) {
	j := &d.attempts.state[a.Job]
	if a.Attempt != j.attempt || j.phase == idle {
		return
	}
	if j.config.Cap = a.Cap; j.phase == running && d.runtime.Capped != nil {
		d.soon = d.repace(a.Job, d.soon)
	}
}

// queueReport has job id report on its progress when the next report is due.
func (d *Driver) queueReport(id sched.JobID) {
	j := &d.attempts.state[id]
	d.queue.push(timed{at: max(j.reportedAt, d.now).Add(d.runtime.Report), kind: report, job: id, attempt: j.attempt})
}

// report appends the report of job id, which runs.
func (d *Driver) report(id sched.JobID, dst []sched.Event) []sched.Event {
	j := &d.attempts.state[id]
	work := j.workAt(d.now)
	rate := float64(work-j.reported) / float64(d.now.Sub(j.reportedAt))
	if d.runtime.Noise > 0 {
		r := rand.New(rand.NewPCG(d.runtime.Seed, uint64(id)<<32|uint64(uint32(j.reports))))
		rate *= math.Exp(d.runtime.Noise * r.NormFloat64())
	}
	j.reports++
	j.reported, j.reportedAt = work, d.now
	d.queueReport(id)
	return append(dst, sched.Event{Time: d.now, Kind: sched.Progressed, Job: id, Attempt: j.attempt, Work: work,
		WorkFrom: d.now, Rate: rate})
}

// queueEpoch has the end of the current epoch of job id reported, if the job has epochs.
func (d *Driver) queueEpoch(id sched.JobID) {
	if d.runtime.EpochEnd == nil {
		return
	}
	j, t := &d.attempts.state[id], &d.jobs[id]
	done, end := j.workAt(d.now), func(n int32) time.Duration { return d.runtime.EpochEnd(t, int(n)) }
	n := max(j.epoch, 1)
	for n > 1 && end(n-1) > done { // it lost work
		n--
	}
	for end(n) <= done {
		if end(n) >= t.Duration {
			return
		}
		n++
	}
	if at := end(n); at <= t.Duration {
		j.epoch = n
		d.queue.push(timed{at: max(j.from.Add(untilDone(at-j.done, j.rate)), d.now), kind: epochEnd, job: id,
			attempt: j.attempt, number: n})
	}
}

// untilDone returns how long work takes at the given rate, rounded up to a nanosecond.
func untilDone(work time.Duration, rate float64) time.Duration {
	if rate == 1 || work <= 0 {
		return max(work, 0)
	}
	x := float64(work) / rate
	if x > float64(horizon) {
		return time.Duration(horizon) // as good as never, see Next
	}
	t := time.Duration(x)
	for sched.ScaleDuration(t, rate) < work {
		t++
	}
	return t
}
