package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// pace returns the work that job id does per time as things are, and the work at which that changes by itself, 0 if it
// does not.
func (d *Driver) pace(id sched.JobID) (rate float64, until time.Duration) {
	j, t, r := &d.state[id], &d.jobs[id], &d.runtime
	if r.Speed != nil || r.Slowdown != nil {
		d.placeOn(j.gpus)
	}
	until = -1
	if r.Speed != nil {
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
		slow = r.Slowdown(d.view, t, j.gpus, len(d.placement), (len(j.gpus)+d.widest-1)/d.widest)
	}
	if r.Interference != nil {
		slow *= d.interference(id)
	}
	if len(d.factor) > 0 {
		slow *= d.disturbance(j.gpus)
	}
	if rate /= slow; !(rate > 0) || math.IsInf(rate, 0) {
		d.broken = fmt.Errorf("sim: job %s cannot run on %d GPUs of %d nodes with batch %d: it would do %v work "+
			"per time",
			t.Spec.Name, len(j.gpus), len(d.placement), j.config.Batch, rate)
		return 1, 0
	}
	return rate, until
}

// placeOn fills d.placement with the number of GPUs of a set on each of its nodes.
func (d *Driver) placeOn(gpus []sched.GPUID) {
	last := sched.NodeID(sched.None)
	d.placement = d.placement[:0]
	for _, g := range gpus { // in order, so the GPUs of a node are neighbours
		if n := d.view.GPUs[g].Node; n != last {
			d.placement, last = append(d.placement, 0), n
		}
		d.placement[len(d.placement)-1]++
	}
}

// interference returns the slow-down of job id on the GPU where it suffers most.
func (d *Driver) interference(id sched.JobID) float64 {
	worst, last := 1.0, []sched.JobID(nil)
	for _, g := range d.state[id].gpus {
		all := d.tenants[g]
		if len(all) < 2 || slices.Equal(all, last) { // the same company as on the GPU before
			continue
		}
		last = all
		d.crowd = d.crowd[:0]
		for _, o := range all {
			if o != id {
				d.crowd = append(d.crowd, &d.jobs[o])
			}
		}
		worst = max(worst, d.runtime.Interference(&d.jobs[id], d.crowd))
	}
	return worst
}

// disturbance returns the factor of the most disturbed GPU of a set.
func (d *Driver) disturbance(gpus []sched.GPUID) float64 {
	worst := 0.0
	for _, g := range gpus {
		f := 1.0
		if int(g) < len(d.factor) {
			f = d.factor[g]
		}
		worst = max(worst, f)
	}
	return worst
}

// setPace gives job id, whose work is settled, its rate, and queues the end of its work or the next change of its rate.
func (d *Driver) setPace(id sched.JobID) {
	j, t := &d.state[id], &d.jobs[id]
	rate, until := d.pace(id)
	j.rate = rate
	j.pace++
	next := timed{kind: workDone, job: id, attempt: j.attempt, number: j.pace}
	work := t.Duration
	if until > j.done && until < work {
		next.kind, work = paceEnd, until
	}
	next.at = max(j.from.Add(untilDone(work-j.done, rate)), d.now)
	d.push(next)
}

// repace settles the work of job id, which runs, and gives it the rate that it has now. If changes are told, and it
// changed, it appends the event.
func (d *Driver) repace(id sched.JobID, dst []sched.Event) []sched.Event {
	j := &d.state[id]
	was := j.rate
	j.done, j.from = d.workOf(j, d.now), max(j.from, d.now)
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
	d.seat(id)
	return d.strike(id, dst)
}

// seat counts job id on its GPUs.
func (d *Driver) seat(id sched.JobID) {
	for _, g := range d.state[id].gpus {
		for int(g) >= len(d.tenants) {
			d.tenants = append(d.tenants, nil)
		}
		at, _ := slices.BinarySearch(d.tenants[g], id)
		d.tenants[g] = slices.Insert(d.tenants[g], at, id)
	}
}

// leave strikes job id, which runs no longer, from its GPUs, and speeds up those that it leaves behind. Who has left
// already leaves nobody.
func (d *Driver) leave(id sched.JobID, dst []sched.Event) []sched.Event {
	if d.runtime.Interference == nil || d.state[id].phase != running {
		return dst
	}
	for _, g := range d.state[id].gpus {
		d.tenants[g] = slices.DeleteFunc(d.tenants[g], func(o sched.JobID) bool { return o == id })
	}
	return d.strike(id, dst)
}

// strike gives all who work beside job id, or did, their new rates, in order of their ids.
func (d *Driver) strike(id sched.JobID, dst []sched.Event) []sched.Event {
	d.struck = d.struck[:0]
	for _, g := range d.state[id].gpus {
		for _, o := range d.tenants[g] {
			if o != id {
				d.struck = append(d.struck, o)
			}
		}
	}
	slices.Sort(d.struck)
	for _, o := range slices.Compact(d.struck) {
		dst = d.repace(o, dst)
	}
	return dst
}

// change disturbs GPUs, and those who work there.
func (d *Driver) change(c Change) {
	for _, g := range c.GPUs {
		for int(g) >= len(d.factor) {
			d.factor = append(d.factor, 1)
		}
		d.factor[g] = c.Factor
	}
	d.struck = d.struck[:0]
	for _, id := range d.live {
		j := &d.state[id]
		if j.phase == running &&
			slices.ContainsFunc(j.gpus, func(g sched.GPUID) bool { return slices.Contains(c.GPUs, g) }) {
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
	j := &d.state[a.Job]
	if a.Attempt != j.attempt || j.phase == idle {
		return
	}
	if j.config.Cap = a.Cap; j.phase == running && d.runtime.Capped != nil {
		d.soon = d.repace(a.Job, d.soon)
	}
}

// queueReport has job id report on its progress when the next report is due.
func (d *Driver) queueReport(id sched.JobID) {
	j := &d.state[id]
	d.push(timed{at: max(j.toldAt, d.now).Add(d.runtime.Report), kind: report, job: id, attempt: j.attempt})
}

// tell appends the report of job id, which runs.
func (d *Driver) tell(id sched.JobID, dst []sched.Event) []sched.Event {
	j := &d.state[id]
	work := d.workOf(j, d.now)
	rate := float64(work-j.told) / float64(d.now.Sub(j.toldAt))
	if d.runtime.Noise > 0 {
		r := rand.New(rand.NewPCG(d.runtime.Seed, uint64(id)<<32|uint64(uint32(j.reports))))
		rate *= math.Exp(d.runtime.Noise * r.NormFloat64())
	}
	j.reports++
	j.told, j.toldAt = work, d.now
	d.queueReport(id)
	return append(dst, sched.Event{Time: d.now, Kind: sched.Progressed, Job: id, Attempt: j.attempt, Work: work,
		WorkFrom: d.now, Rate: rate})
}

func (d *Driver) workOf(j *jobState, at sched.Time) time.Duration {
	return j.done + sched.ScaleDuration(max(at.Sub(j.from), 0), j.rate)
}

// queueEpoch has the end of the current epoch of job id reported, if the job has epochs.
func (d *Driver) queueEpoch(id sched.JobID) {
	if d.runtime.EpochEnd == nil {
		return
	}
	j, t := &d.state[id], &d.jobs[id]
	done, end := d.workOf(j, d.now), func(n int32) time.Duration { return d.runtime.EpochEnd(t, int(n)) }
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
		d.push(timed{at: max(j.from.Add(untilDone(at-j.done, j.rate)), d.now), kind: epochEnd, job: id,
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
