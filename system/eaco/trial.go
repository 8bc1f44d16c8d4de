package eaco

import (
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// tolerance is what a slow-down may exceed its limit by: rounding.
const tolerance = 1e-9

// refusal is why a job may not have a set of GPUs.
type refusal struct {
	code obstacle
	job  sched.JobID // for whose sake: the newcomer, or one that is there
	slow float64     // it would be so much slower than alone
}

type obstacle uint8

const (
	admitted obstacle = iota
	tooSlow           // by what History says, a deadline or a limit would be broken
	tried             // the newcomer was taken off these jobs before
	onTrial           // there is a trial under way
	noSlack           // a deadline would not outlast a trial that is undone
	noSave            // the newcomer may not be stopped, as a trial that is undone would
)

// admits reports whether job id may have gpus, or why not: at once if no one is there, else on trial, where
//
//  1. all keep their deadlines, or their limit, by what History says;
//  2. none of the jobs there takes part in another trial, and id was not taken off them before;
//  3. each that has a deadline keeps it if it is slowed as much as any set so large ever was until the trial is over,
//     and all goes on as before then.
func (d *Decider) admits(v *sched.View, id sched.JobID, gpus []sched.GPUID) refusal {
	for i, g := range gpus {
		if i == 0 || !d.same(v, g, gpus[i-1]) {
			if r := d.allKeep(v, id, g, len(gpus)); r.code != admitted {
				return r // mostly on the first GPU: what follows is done for few sets
			}
		}
	}
	d.crowd = d.partner(gpus, d.crowd)
	if len(d.crowd) > 0 && d.p.Unsaved.Protects(&v.Jobs[id]) {
		return refusal{code: noSave, job: id}
	}
	if slices.ContainsFunc(d.jobs[id].tried, func(t []sched.JobID) bool { return slices.Equal(t, d.crowd) }) {
		return refusal{code: tried, job: id}
	}
	for _, o := range d.crowd {
		if slices.Equal(d.held[o], gpus) {
			continue
		}
		if d.onTrial(o) {
			return refusal{code: onTrial, job: o}
		}
		if slow := d.slowOff(v, o, gpus); !d.keeps(v, o, slow) {
			return refusal{tooSlow, o, slow}
		}
	}
	lasts := d.lasts(v, id, d.crowd, 1)
	for _, o := range d.crowd {
		if !d.spares(v, o, lasts) {
			d.slack = true
			return refusal{code: noSlack, job: o}
		}
	}
	return refusal{}
}

// allKeep finds the first, of newcomer id, of a width, and all that are on GPU g, who does not keep its deadline, or
// its limit, by how they slow each other there. A job is as slow as on the slowest of its GPUs, so that each may be
// asked about by itself.
func (d *Decider) allKeep(v *sched.View, id sched.JobID, g sched.GPUID, width int) refusal {
	there := d.on[g]
	if len(there) == 0 {
		return refusal{}
	}
	if slow := d.ask.slow(v, g, width, id, there, sched.None); !d.keeps(v, id, slow) {
		return refusal{tooSlow, id, slow}
	}
	for _, o := range there {
		if slow := d.ask.slow(v, g, len(d.held[o]), o, there, id); !d.keeps(v, o, slow) {
			return refusal{tooSlow, o, slow}
		}
	}
	return refusal{}
}

// onTrial reports whether job o shares a GPU with a newcomer on trial, or is one.
func (d *Decider) onTrial(o sched.JobID) bool {
	for _, g := range d.held[o] {
		for _, other := range d.on[g] {
			if d.trial[other] {
				return true
			}
		}
	}
	return false
}

// slowOff returns the slow-down of job o on those of its GPUs that are not among gpus, which are in order; 1 if all
// are.
func (d *Decider) slowOff(v *sched.View, o sched.JobID, gpus []sched.GPUID) float64 {
	slow, asked := 1.0, sched.GPUID(-1)
	for _, g := range d.held[o] {
		if _, in := slices.BinarySearch(gpus, g); in || asked >= 0 && d.same(v, g, asked) {
			continue
		}
		slow, asked = max(slow, d.ask.slow(v, g, len(d.held[o]), o, d.on[g], sched.None)), g
	}
	return slow
}

// keeps reports whether job id keeps its deadline, or its limit, if it is so much slower than alone from now on.
func (d *Decider) keeps(v *sched.View, id sched.JobID, slow float64) bool {
	if end := v.Jobs[id].Spec.Deadline; end > 0 {
		return d.know.finish(v, id, slow) <= end
	}
	// infinitely slow is what cannot be, whatever the limit
	return slow <= d.p.Slow*(1+tolerance) && !math.IsInf(slow, 1)
}

// size returns the most jobs that a GPU of job o has, one more with a newcomer.
func (d *Decider) size(o sched.JobID) int {
	n := 1
	for _, g := range d.held[o] {
		n = max(n, len(d.on[g]))
	}
	return n
}

// lasts returns how long a trial of job id next to others may last, so many more being on their GPUs than are now. It
// should be over when each has ended the epoch it is in and gone through another, at the worst slow-down.
func (d *Decider) lasts(v *sched.View, id sched.JobID, others []sched.JobID, more int) time.Duration {
	longest, n := 2*d.know.epoch(v, id), 1
	for _, o := range others {
		longest, n = max(longest, 2*d.know.epoch(v, o)), max(n, d.size(o)+more)
	}
	return time.Duration(min(float64(longest)*d.ask.worstOf(n)*d.p.Patience, float64(math.MaxInt64/4)))
}

// spares reports whether job o keeps its deadline after a trial that lasts so long and is undone: it has lost one epoch
// at the worst slow-down, or all that it can lose, whichever is more.
func (d *Decider) spares(v *sched.View, o sched.JobID, lasts time.Duration) bool {
	end := v.Jobs[o].Spec.Deadline
	if end == 0 {
		return true
	}
	worst := d.ask.worstOf(d.size(o) + 1)
	cost := max(float64(d.know.epoch(v, o))*worst, float64(lasts)*(1-1/worst))
	before := d.know.finish(v, o, d.slowOff(v, o, nil))
	return before.Add(time.Duration(cost)) <= end
}

// started starts the trial of a newcomer, and the epoch of any job that starts.
func (d *Decider) started(v *sched.View, e *sched.Event) {
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
func (d *Decider) begin(v *sched.View, id sched.JobID, from sched.Time) {
	d.crowd = d.partner(d.held[id], d.crowd)
	d.jobs[id].until = from.Add(d.lasts(v, id, d.others(id), 0))
	for _, o := range d.crowd {
		d.jobs[o].from, d.jobs[o].took = from, 0
	}
}

// others returns those of d.crowd that are not id.
func (d *Decider) others(id sched.JobID) []sched.JobID {
	return slices.DeleteFunc(slices.Clone(d.crowd), func(o sched.JobID) bool { return o == id })
}

// epochEnded takes the length of the first whole epoch of a job on trial.
func (d *Decider) epochEnded(e *sched.Event) {
	m := &d.jobs[e.Job]
	if m.from != sched.Never && m.begin != sched.Never && m.begin >= m.from && m.took == 0 {
		m.took = e.Time.Sub(m.begin)
	}
	m.begin, m.edge = e.Time, e.Time
}

// trials ends the trials that can be ended now, and asks to be woken when the next must.
func (d *Decider) trials(v *sched.View, out *sched.Desired) {
	for _, id := range slices.Clone(d.open) {
		if v.Jobs[id].Attempt != sched.Running {
			continue
		}
		if d.jobs[id].until == sched.Never { // no one saw it start
			d.begin(v, id, max(v.Now, v.Jobs[id].WorkFrom))
		}
		d.crowd = d.partner(d.held[id], d.crowd)
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
func (d *Decider) judge(v *sched.View, id sched.JobID, others []sched.JobID) verdict {
	if len(others) == 0 {
		return keep
	}
	all := keep
	for _, o := range append(others, id) {
		j, m := &v.Jobs[o], &d.jobs[o]
		alone := d.know.epoch(v, o)
		switch {
		case j.Spec.Deadline > 0 && j.Attempt == sched.Running && j.Rate > 0 &&
			!d.keeps(v, o, 1/(j.Rate*d.know.capped(v, o))):
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
func (d *Decider) keep(v *sched.View, id sched.JobID, others []sched.JobID, out *sched.Desired) {
	t := out.Keep(v, id)
	t.Trial, t.Why = false, sched.Reason{Code: sched.WhyKept}
	if len(others) > 0 {
		t.Why.Job = others[0]
	}
	d.put(v, id, slices.Clone(d.held[id]), d.share[id], false)
	d.part(append(others, id), out)
	d.dirty = true
}

// undo takes newcomer id off its GPUs, at the end of its epoch or at once, never to be put next to the same jobs again.
func (d *Decider) undo(id sched.JobID, others []sched.JobID, atOnce bool, out *sched.Desired) {
	if m := &d.jobs[id]; !slices.ContainsFunc(m.tried, func(t []sched.JobID) bool { return slices.Equal(t, others) }) {
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
func (d *Decider) part(jobs []sched.JobID, out *sched.Desired) {
	for _, o := range jobs {
		d.jobs[o].from, d.jobs[o].until, d.jobs[o].took = sched.Never, sched.Never, 0
		out.Watch = append(out.Watch, sched.Watch{Job: o})
	}
}
