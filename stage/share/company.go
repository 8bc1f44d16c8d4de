package share

import (
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/model/footprint"
	"github.com/trainyard/trainyard/sched"
)

// Limits bound who may share with whom.
type Limits struct {
	Rule
	// Slow bounds the slow-down of jobs without deadline, >= 1; +Inf: it is not bounded.
	Slow float64
	// Patience is how many times as long as it should take at worst a trial may last, > 0.
	Patience float64
	// Alone is the least priority, > 0, of jobs that share with no one.
	Alone int64
	// Parallel lists the models that spread over GPUs (model parallelism): the memory of their GPUs is added up. "*" =
	// all.
	Parallel []string
	// Unsaved says whether jobs that do not save may be taken on trial, which may stop them.
	Unsaved sched.Unsaved
}

// Defaults. The paper gives no thresholds; the limit and the patience are ours.
const (
	DefaultThreshold = 0.6
	DefaultMost      = 4
	DefaultSlow      = 1.10
	DefaultPatience  = 2
)

// Company is who shares GPUs with whom, and on trial.
type Company struct {
	Core
	// Slack: in the search under way a set was refused for want of slack, which depends on the newcomer's epoch.
	Slack bool

	limits  Limits
	jobs    []known
	changed sched.Changes // jobs of which something was remembered without an event of theirs
	crowd   []sched.JobID // scratch
}

// of returns what is remembered of job id, for it to be changed.
func (d *Company) of(id sched.JobID) *known {
	d.changed.Note(id)
	return &d.jobs[id]
}

// known is what is remembered of a job.
type known struct {
	tried [][]sched.JobID // sets that it was taken off
	from  sched.Time      // it is part of a trial whose jobs all work since then; Never = it is not
	until sched.Time      // of a newcomer on trial: when the trial ends at the latest
	begin sched.Time      // of the epoch under way; Never = unknown
	took  time.Duration   // of its first whole epoch since from; 0 = there was none
	edge  sched.Time      // end of its last epoch; -1 = none
	whole bool            // its next attempt starts with a whole epoch
	risk  bool            // it was flagged as late
}

// leave ends the part that the job has in a trial.
func (m *known) leave() { m.from, m.until, m.took = sched.Never, sched.Never, 0 }

func newKnown() known {
	return known{from: sched.Never, until: sched.Never, begin: sched.Never, edge: -1}
}

// NewCompany returns one of which no one is part yet.
func NewCompany(k Known, l Limits) *Company {
	c := &Company{Core: NewCore(k, l.Rule), limits: l}
	if !k.Timed {
		c.Know.Learner.Epoch = c.Know.sureEpoch
	}
	return c
}

// Resume takes over what the view shows.
func (d *Company) Resume(v *sched.View) {
	d.Prime(v)
	d.meet(v)
}

// meet makes room for jobs that are new.
func (d *Company) meet(v *sched.View) {
	for len(d.jobs) < len(v.Jobs) {
		d.changed.Note(sched.JobID(len(d.jobs)))
		d.jobs = append(d.jobs, newKnown())
	}
}

// Observe folds an event.
func (d *Company) Observe(v *sched.View, e *sched.Event) {
	d.Fold(v, e)
	d.meet(v)
	switch e.Kind {
	case sched.EpochEnded:
		d.epochEnded(e)
	case sched.AttemptStarted:
		d.started(v, e)
	case sched.AttemptEnded:
		m := &d.jobs[e.Job]
		m.begin, m.whole = sched.Never, m.whole && e.Outcome == sched.Preempted
	case sched.Ordered:
		if sched.ActionKind(e.Code) == sched.Stop {
			m := &d.jobs[e.Job]
			m.whole = m.edge == e.Time
		}
	}
}

// Flag notes that job id would be late even alone, and reports whether that is new.
func (d *Company) Flag(id sched.JobID) bool {
	if d.jobs[id].risk {
		return false
	}
	d.of(id).risk = true
	return true
}

// Undone reports whether job id was taken off others before.
func (d *Company) Undone(id sched.JobID) bool { return len(d.jobs[id].tried) > 0 }

// Late reports whether job id would miss its deadline even alone.
func (d *Company) Late(v *sched.View, id sched.JobID) bool {
	end := v.Jobs[id].Spec.Deadline
	return end > 0 && d.Know.finish(v, id, 1) > end
}

// NeedOf returns what job id asks of a set; one that is late anyway shares with no one.
func (d *Company) NeedOf(v *sched.View, id sched.JobID, late bool) Need {
	s := v.Jobs[id].Spec
	return Need{GPUs: int(s.GPUs.Want), Types: s.Types, MemGB: d.Know.Room(d.Know.memory(v, id)), Share: !late &&
		d.Apart(v, id) == "", Sum: d.spreads(s.Model)}
}

// Apart says why job id shares with no one: it does not consent, or too little is known of it. "" = it may.
func (d *Company) Apart(v *sched.View, id sched.JobID) string {
	if why := d.unwilling(v, id); why != "" {
		return why
	}
	if d.Know.epoch(v, id) <= 0 {
		return "how long an epoch takes is unknown"
	}
	return ""
}

// unwilling is Apart whatever is known of its epochs.
func (d *Company) unwilling(v *sched.View, id sched.JobID) string {
	s := v.Jobs[id].Spec
	switch {
	case d.limits.Most <= 1 || v.ShareLimit <= 1:
		return "no one does here"
	case s.Share == sched.ShareNever:
		return "it does not want to"
	case int64(s.Priority) >= d.limits.Alone:
		return "of its priority"
	case d.Know.Peaks != nil && d.Know.memory(v, id) == 0:
		return footprint.Missing
	case s.Model == "" || s.Epochs <= 0 || !(s.Util > 0) || d.Know.memory(v, id) == 0:
		return "one of model, epochs, gpu_use and gpu_memory_gb is not given"
	}
	return ""
}

// spreads reports whether jobs of a model spread over their GPUs.
func (d *Company) spreads(model string) bool {
	return slices.Contains(d.limits.Parallel, "*") || slices.ContainsFunc(d.limits.Parallel,
		func(m string) bool { return strings.EqualFold(m, model) })
}

// Give has job id hold set: on trial if others are there.
func (d *Company) Give(v *sched.View, id sched.JobID, set []sched.GPUID, share bool, out *sched.Desired) {
	d.crowd = d.partner(set, d.crowd)
	trial := len(d.crowd) > 0
	why := sched.Reason{Code: sched.WhyStarted}
	if trial {
		why = sched.Reason{Code: sched.WhyTrial, Job: d.crowd[0], A: float64(len(d.crowd))}
	}
	t := out.Give(id, set, why)
	if t.Trial = trial; share {
		t.Share = sched.Shared
	}
	if trial {
		d.tryOut(id, out)
	} else if v.Jobs[id].Watched {
		out.Watch = append(out.Watch, sched.Watch{Job: id})
	}
	d.Put(v, id, set, share, trial)
	d.Queue(v, id, false)
}

// tryOut has the epochs of newcomer id and of d.crowd watched.
func (d *Company) tryOut(id sched.JobID, out *sched.Desired) {
	d.of(id).leave()
	for _, o := range append(d.crowd, id) {
		out.Watch = append(out.Watch, sched.Watch{Job: o, On: true})
	}
}
