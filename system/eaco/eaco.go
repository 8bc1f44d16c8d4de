package eaco

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
)

// Params are the choices of EaCO. The zero value of a field means its default where one is given.
type Params struct {
	Known
	Use, Memory float64 // thresholds on GPUs before a newcomer, in (0, 1]; default 0.6: the paper gives none
	Most        int     // jobs on a GPU, 1 to interference.MaxSet; default 4
	// Slow bounds the slow-down of jobs without deadline, >= 1; default 1.10, ours; +Inf as published.
	Slow float64
	// Patience is how many times as long as it should take at worst a trial may last, > 0; default 2, ours.
	Patience float64
	// Alone is the least priority, > 0, of jobs that share with no one; default 1.
	Alone int32
	// Late says what becomes of jobs that would miss their deadlines even alone: they wait, as published, or (default,
	// ours) run alone where there is room.
	LateWait bool
	// Parallel lists the models that spread over GPUs (model parallelism): the memory of their GPUs is added up. "*" =
	// all, as published.
	Parallel []string
	// UserGPUs is how many GPUs one user may hold; 0 = no limit.
	UserGPUs int
	// Unsaved says whether jobs that do not save may be taken on trial, which may stop them.
	Unsaved sched.Unsaved
}

// Defaults.
const (
	DefaultThreshold = 0.6
	DefaultMost      = 4
	DefaultSlow      = 1.10
	DefaultPatience  = 2
)

// Decider is EaCO.
type Decider struct {
	core
	p    Params
	jobs []known

	crowd  []sched.JobID // scratch
	failed map[kind]bool // kinds of jobs for which nothing was found in this walk
	// in the search under way a set was refused for want of slack, which depends on the newcomer's epoch
	slack bool
	users map[string]int // GPUs held, by user; only where limited
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

// kind are jobs for which the walk finds the same, as long as no deadline, their own or for want of slack another's,
// says where they may go and they were taken off nothing.
type kind struct {
	model string
	util  float32
	gpus  int32
	types sched.TypeSet
	memGB float32
	share bool
	saves bool // it may be stopped, as after a trial
	due   bool // a deadline, not the limit, says what it may share
}

// New returns EaCO.
func New(p Params) (*Decider, error) {
	p.fill()
	if err := p.validate(); err != nil {
		return nil, err
	}
	d := &Decider{core: newCore(p.Known, rule{use: p.Use, memory: p.Memory, most: p.Most}), p: p,
		failed: make(map[kind]bool), users: make(map[string]int)}
	p.Learner.Epoch = d.know.sureEpoch
	return d, nil
}

// fill puts defaults where nothing is given.
func (p *Params) fill() {
	p.Use, p.Memory = cmp.Or(p.Use, DefaultThreshold), cmp.Or(p.Memory, DefaultThreshold)
	p.Slow, p.Patience = cmp.Or(p.Slow, DefaultSlow), cmp.Or(p.Patience, DefaultPatience)
	p.Most, p.Alone = cmp.Or(p.Most, DefaultMost), cmp.Or(p.Alone, 1)
}

// validate returns the first thing wrong with p.
func (p *Params) validate() error {
	switch {
	case p.Work == nil || p.Learner == nil:
		return errors.New("eaco: no knowledge of work or no learner, want both")
	case !(p.Use > 0 && p.Use <= 1) || !(p.Memory > 0 && p.Memory <= 1):
		return fmt.Errorf("eaco: thresholds of use %v and memory %v, want numbers in (0, 1]", p.Use, p.Memory)
	case p.Most < 1 || p.Most > interference.MaxSet:
		return fmt.Errorf("eaco: %d jobs on a GPU, want 1 to %d", p.Most, interference.MaxSet)
	case !(p.Slow >= 1):
		return fmt.Errorf("eaco: slow-down limit %v, want a number >= 1 or inf", p.Slow)
	case p.Alone < 1:
		return fmt.Errorf("eaco: jobs of priority %d share with no one, want a priority > 0", p.Alone)
	case !(p.Patience > 0) || math.IsInf(p.Patience, 1):
		return fmt.Errorf("eaco: patience %v, want a number > 0", p.Patience)
	}
	return nil
}

var (
	_ sched.Decider = (*Decider)(nil)
	_ sched.Resumer = (*Decider)(nil)
)

// Resume takes over what the view shows.
func (d *Decider) Resume(v *sched.View) {
	d.prime(v)
	d.meet(v)
}

// meet makes room for jobs that are new.
func (d *Decider) meet(v *sched.View) {
	for len(d.jobs) < len(v.Jobs) {
		d.jobs = append(d.jobs, newKnown())
	}
}

func newKnown() known {
	return known{from: sched.Never, until: sched.Never, begin: sched.Never, edge: -1}
}

// Observe folds an event.
func (d *Decider) Observe(v *sched.View, e *sched.Event) {
	d.fold(v, e)
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

// Decide ends trials, then looks at the queue if anything changed.
func (d *Decider) Decide(v *sched.View, out *sched.Desired) {
	d.trials(v, out)
	if d.dirty {
		d.dirty = false
		d.walk(v, out)
	}
}

// walk serves the queue: by priority, then arrival. A job for which there is no room is passed over.
func (d *Decider) walk(v *sched.View, out *sched.Desired) {
	clear(d.failed)
	if d.p.UserGPUs > 0 {
		clear(d.users)
		for id := range d.held {
			d.users[v.Jobs[id].Spec.User] += len(d.held[id])
		}
	}
	for _, id := range slices.Clone(d.waiting) {
		j := &v.Jobs[id]
		if user := j.Spec.User; d.p.UserGPUs > 0 {
			if d.users[user]+int(j.Spec.GPUs.Want) > d.p.UserGPUs {
				continue
			}
			d.users[user] += d.schedule(v, id, out)
			continue
		}
		d.schedule(v, id, out)
	}
}

// schedule is Algorithm 1 up to the trial: it gives job id the first candidate set on which all keep their deadlines,
// and returns how many GPUs it gave.
func (d *Decider) schedule(v *sched.View, id sched.JobID, out *sched.Desired) int {
	j, m := &v.Jobs[id], &d.jobs[id]
	late := d.late(v, id)
	if late && !m.risk {
		m.risk = true
		out.Notes = append(out.Notes, sched.Note{Job: id, Why: sched.Reason{Code: sched.WhyAtRisk}})
	}
	if late && d.p.LateWait {
		return 0
	}
	n := d.need(v, id, late)
	k := kind{j.Spec.Model, j.Spec.Util, j.Spec.GPUs.Want, j.Spec.Types, j.Spec.GPUMemGB, n.share,
		!d.p.Unsaved.Protects(j), n.share && j.Spec.Deadline > 0}
	if d.failed[k] {
		return 0
	}
	d.slack = false
	set := d.first(v, &d.book, n, func(gpus []sched.GPUID) bool { return d.admits(v, id, gpus).code == admitted })
	if set == nil {
		d.failed[k] = !n.share || !k.due && len(m.tried) == 0 && !d.slack
		return 0
	}
	d.give(v, id, set, n.share, out)
	return len(set)
}

// late reports whether job id would miss its deadline even alone.
func (d *Decider) late(v *sched.View, id sched.JobID) bool {
	end := v.Jobs[id].Spec.Deadline
	return end > 0 && d.know.finish(v, id, 1) > end
}

// need returns what job id asks of a set; one that is late anyway shares with no one.
func (d *Decider) need(v *sched.View, id sched.JobID, late bool) need {
	s := v.Jobs[id].Spec
	return need{gpus: int(s.GPUs.Want), types: s.Types, memGB: float64(s.GPUMemGB), share: !late &&
		d.mayShare(v, id), sum: d.spreads(s.Model)}
}

// mayShare reports whether enough is known of job id, and whether it consents.
func (d *Decider) mayShare(v *sched.View, id sched.JobID) bool { return d.alone(v, id) == "" }

// alone says why job id shares with no one, "" if it may.
func (d *Decider) alone(v *sched.View, id sched.JobID) string {
	s := v.Jobs[id].Spec
	switch {
	case d.p.Most <= 1 || v.ShareLimit <= 1:
		return "no one does here"
	case s.Share == sched.ShareNever:
		return "it does not want to"
	case s.Priority >= d.p.Alone:
		return "of its priority"
	case s.Model == "" || s.Epochs <= 0 || !(s.Util > 0) || !(s.GPUMemGB > 0):
		return "model, epochs, use or memory is not given"
	case d.know.epoch(v, id) <= 0:
		return "how long an epoch takes is unknown"
	}
	return ""
}

// spreads reports whether jobs of a model spread over their GPUs.
func (d *Decider) spreads(model string) bool {
	return slices.Contains(d.p.Parallel, "*") || slices.ContainsFunc(d.p.Parallel,
		func(m string) bool { return strings.EqualFold(m, model) })
}

// give has job id hold set: on trial if others are there.
func (d *Decider) give(v *sched.View, id sched.JobID, set []sched.GPUID, share bool, out *sched.Desired) {
	d.crowd = d.partner(set, d.crowd)
	trial := len(d.crowd) > 0
	why := sched.Reason{Code: sched.WhyStarted}
	if trial {
		d.jobs[id].from, d.jobs[id].until, d.jobs[id].took = sched.Never, sched.Never, 0
		why = sched.Reason{Code: sched.WhyTrial, Job: d.crowd[0], A: float64(len(d.crowd))}
	}
	t := out.Give(id, set, why)
	if t.Trial = trial; share {
		t.Share = sched.Shared
	}
	if trial {
		for _, o := range append(d.crowd, id) {
			out.Watch = append(out.Watch, sched.Watch{Job: o, On: true})
		}
	} else if v.Jobs[id].Watched {
		out.Watch = append(out.Watch, sched.Watch{Job: id})
	}
	d.put(v, id, set, share, trial)
	d.queue(v, id, false)
}
