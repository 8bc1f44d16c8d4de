package share

import (
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// tolerance is what a slow-down may exceed its limit by: rounding.
const tolerance = 1e-9

// Refusal is why a job may not have a set of GPUs.
type Refusal struct {
	Code Obstacle
	Job  sched.JobID // for whose sake: the newcomer, or one that is there
	Slow float64     // it would be so much slower than alone
}

// Obstacle is what kind of refusal it is.
type Obstacle uint8

// Obstacles.
const (
	Admitted Obstacle = iota
	TooSlow           // by what History says, a deadline or a limit would be broken
	Tried             // the newcomer was taken off these jobs before
	OnTrial           // there is a trial under way
	NoSlack           // a deadline would not outlast a trial that is undone
	NoSave            // the newcomer may not be stopped, as a trial that is undone would
)

// Admits reports whether job id may have gpus, or why not: at once if no one is there, else on trial, where
//
//  1. all keep their deadlines, or their limit, by what History says;
//  2. none of the jobs there takes part in another trial, and id was not taken off them before;
//  3. each that has a deadline keeps it if it is slowed as much as any set so large ever was until the trial is over,
//     and all goes on as before then.
func (d *Company) Admits(v *sched.View, id sched.JobID, gpus []sched.GPUID) Refusal {
	for i, g := range gpus {
		if i == 0 || !d.same(v, g, gpus[i-1]) {
			if r := d.allKeep(v, id, g, len(gpus)); r.Code != Admitted {
				return r // mostly on the first GPU: what follows is done for few sets
			}
		}
	}
	d.crowd = d.partner(gpus, d.crowd)
	if len(d.crowd) > 0 && d.limits.Unsaved.Protects(&v.Jobs[id]) {
		return Refusal{Code: NoSave, Job: id}
	}
	if slices.ContainsFunc(d.jobs[id].tried, func(t []sched.JobID) bool { return slices.Equal(t, d.crowd) }) {
		return Refusal{Code: Tried, Job: id}
	}
	for _, o := range d.crowd {
		if slices.Equal(d.Held[o], gpus) {
			continue
		}
		if d.onTrial(o) {
			return Refusal{Code: OnTrial, Job: o}
		}
		if slow := d.slowOff(v, o, gpus); !d.keeps(v, o, slow) {
			return Refusal{TooSlow, o, slow}
		}
	}
	lasts := d.lasts(v, id, d.crowd, 1)
	for _, o := range d.crowd {
		if !d.spares(v, o, lasts) {
			d.Slack = true
			return Refusal{Code: NoSlack, Job: o}
		}
	}
	return Refusal{}
}

// allKeep finds the first, of newcomer id, of a width, and all that are on GPU g, who does not keep its deadline, or
// its limit, by how they slow each other there. A job is as slow as on the slowest of its GPUs, so that each may be
// asked about by itself.
func (d *Company) allKeep(v *sched.View, id sched.JobID, g sched.GPUID, width int) Refusal {
	there := d.On[g]
	if len(there) == 0 {
		return Refusal{}
	}
	if slow := d.ask.slow(v, g, width, id, there, sched.None); !d.keeps(v, id, slow) {
		return Refusal{TooSlow, id, slow}
	}
	for _, o := range there {
		if slow := d.ask.slow(v, g, len(d.Held[o]), o, there, id); !d.keeps(v, o, slow) {
			return Refusal{TooSlow, o, slow}
		}
	}
	return Refusal{}
}

// OnTrial reports whether job o shares a GPU with a newcomer on trial, or is one.
func (d *Company) onTrial(o sched.JobID) bool {
	for _, g := range d.Held[o] {
		for _, other := range d.On[g] {
			if d.trial[other] {
				return true
			}
		}
	}
	return false
}

// slowOff returns the slow-down of job o on those of its GPUs that are not among gpus, which are in order; 1 if all
// are.
func (d *Company) slowOff(v *sched.View, o sched.JobID, gpus []sched.GPUID) float64 {
	slow, asked := 1.0, sched.GPUID(-1)
	for _, g := range d.Held[o] {
		if _, in := slices.BinarySearch(gpus, g); in || asked >= 0 && d.same(v, g, asked) {
			continue
		}
		slow, asked = max(slow, d.ask.slow(v, g, len(d.Held[o]), o, d.On[g], sched.None)), g
	}
	return slow
}

// keeps reports whether job id keeps its deadline, or its limit, if it is so much slower than alone from now on.
func (d *Company) keeps(v *sched.View, id sched.JobID, slow float64) bool {
	if end := v.Jobs[id].Spec.Deadline; end > 0 {
		return d.Know.finish(v, id, slow) <= end
	}
	// infinitely slow is what cannot be, whatever the limit
	return slow <= d.limits.Slow*(1+tolerance) && !math.IsInf(slow, 1)
}

// size returns the most jobs that a GPU of job o has, one more with a newcomer.
func (d *Company) size(o sched.JobID) int {
	n := 1
	for _, g := range d.Held[o] {
		n = max(n, len(d.On[g]))
	}
	return n
}

// lasts returns how long a trial of job id next to others may last, so many more being on their GPUs than are now. It
// should be over when each has ended the epoch it is in and gone through another, at the worst slow-down.
func (d *Company) lasts(v *sched.View, id sched.JobID, others []sched.JobID, more int) time.Duration {
	longest, n := 2*d.Know.epoch(v, id), 1
	for _, o := range others {
		longest, n = max(longest, 2*d.Know.epoch(v, o)), max(n, d.size(o)+more)
	}
	return time.Duration(min(float64(longest)*d.ask.worstOf(n)*d.limits.Patience, float64(math.MaxInt64/4)))
}

// spares reports whether job o keeps its deadline after a trial that lasts so long and is undone: it has lost one epoch
// at the worst slow-down, or all that it can lose, whichever is more.
func (d *Company) spares(v *sched.View, o sched.JobID, lasts time.Duration) bool {
	end := v.Jobs[o].Spec.Deadline
	if end == 0 {
		return true
	}
	worst := d.ask.worstOf(d.size(o) + 1)
	cost := max(float64(d.Know.epoch(v, o))*worst, float64(lasts)*(1-1/worst))
	before := d.Know.finish(v, o, d.slowOff(v, o, nil))
	return before.Add(time.Duration(cost)) <= end
}

// started starts the trial of a newcomer, and the epoch of any job that starts.
func (d *Company) started(v *sched.View, e *sched.Event) {
	id, m := e.Job, &d.jobs[e.Job]
	if v.Jobs[id].Attempt != sched.Running {
		return
	}
	from := max(e.WorkFrom, e.Time)
	m.begin = sched.Never
	if m.whole || e.Work == 0 {
		m.begin = from
	}
	if d.trial[id] {
		d.begin(v, id, from)
	}
}

// begin has the trial of newcomer id start at a time: whole epochs from then on count.
func (d *Company) begin(v *sched.View, id sched.JobID, from sched.Time) {
	d.crowd = d.partner(d.Held[id], d.crowd)
	d.of(id).until = from.Add(d.lasts(v, id, d.others(id), 0))
	for _, o := range d.crowd {
		m := d.of(o)
		m.from, m.took = from, 0
	}
}

// others returns those of d.crowd that are not id.
func (d *Company) others(id sched.JobID) []sched.JobID {
	return slices.DeleteFunc(slices.Clone(d.crowd), func(o sched.JobID) bool { return o == id })
}

// epochEnded takes the length of the first whole epoch of a job on trial.
func (d *Company) epochEnded(e *sched.Event) {
	m := &d.jobs[e.Job]
	if m.from != sched.Never && m.begin != sched.Never && m.begin >= m.from && m.took == 0 {
		m.took = e.Time.Sub(m.begin)
	}
	m.begin, m.edge = e.Time, e.Time
}

// Trials ends the trials that can be ended now, and asks to be woken when the next must.
func (d *Company) Trials(v *sched.View, out *sched.Desired) {
	relieved := relieve(d, v, out)
	for _, id := range slices.Clone(d.open) {
		if v.Jobs[id].Attempt != sched.Running || slices.Contains(relieved, id) {
			continue
		}
		if d.jobs[id].until == sched.Never { // no one saw it start
			d.begin(v, id, max(v.Now, v.Jobs[id].WorkFrom))
		}
		d.crowd = d.partner(d.Held[id], d.crowd)
		others := d.others(id)
		switch m, ends := &d.jobs[id], d.judge(v, id, others); {
		case v.Now >= m.until && ends != keep:
			d.undo(id, others, true, out)
		case v.Jobs[id].Later() != nil: // it leaves at the end of its epoch
			if v.Now < m.until {
				out.WakeBy(m.until)
			}
		case ends == keep:
			d.keep(v, id, others, out)
		case ends == undo:
			d.undo(id, others, m.edge == v.Now, out)
		default:
			out.WakeBy(m.until)
		}
	}
}

// verdict is how a trial goes.
type verdict int

const (
	wait verdict = iota // someone's whole epoch is not over
	keep
	undo
)

// judge judges the trial of newcomer id next to others. An estimate that is violated ends it before all have gone
// through a whole epoch.
func (d *Company) judge(v *sched.View, id sched.JobID, others []sched.JobID) verdict {
	if len(others) == 0 {
		return keep
	}
	all := keep
	for _, o := range append(others, id) {
		j, m := &v.Jobs[o], &d.jobs[o]
		alone := d.Know.epoch(v, o)
		switch {
		case j.Spec.Deadline > 0 && j.Attempt == sched.Running && j.Rate > 0 &&
			!d.keeps(v, o, 1/(j.Rate*d.Know.capped(v, o))):
			return undo
		case m.took == 0 || alone == 0:
			all = wait
		case !d.keeps(v, o, float64(m.took)/float64(alone)):
			return undo
		}
	}
	return all
}

// keep makes newcomer id one of those that are there.
func (d *Company) keep(v *sched.View, id sched.JobID, others []sched.JobID, out *sched.Desired) {
	t := out.Keep(v, id)
	t.Trial, t.Why = false, sched.Reason{Code: sched.WhyKept}
	if len(others) > 0 {
		t.Why.Job = others[0]
	}
	d.Put(v, id, slices.Clone(d.Held[id]), d.Shares[id], false)
	d.part(append(others, id), out)
	d.Dirty = true
}

// undo takes newcomer id off its GPUs, at the end of its epoch or at once, never to be put next to the same jobs again.
func (d *Company) undo(id sched.JobID, others []sched.JobID, atOnce bool, out *sched.Desired) {
	if m := d.of(id); !slices.ContainsFunc(m.tried, func(t []sched.JobID) bool { return slices.Equal(t, others) }) {
		m.tried = append(m.tried, slices.Clone(others))
	}
	t := out.Give(id, nil, sched.Reason{Code: sched.WhyUndone, Job: others[0]})
	if !atOnce {
		t.At = sched.AtEpochEnd
		out.WakeBy(d.jobs[id].until)
		return
	}
	d.part(append(others, id), out)
}

// part ends the part of jobs in a trial. Their epochs need not be reported any more.
func (d *Company) part(jobs []sched.JobID, out *sched.Desired) {
	for _, o := range jobs {
		d.of(o).leave()
		out.Watch = append(out.Watch, sched.Watch{Job: o})
	}
}
