package eaco

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/share"
)

// Known is what is known of jobs in addition to what they say of themselves.
type Known = share.Known

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
	Alone int64
	// Late says what becomes of jobs that would miss their deadlines even alone: they wait, as published, or (default,
	// ours) run alone where there is room.
	LateWait bool
	// Parallel lists the models that spread over GPUs (model parallelism): the memory of their GPUs is added up. "*" =
	// all, as published.
	Parallel []string
	Class    sched.Classer // of jobs that wait, the larger first; nil = the priority
	// UserGPUs is how many GPUs one user may hold; 0 = no limit.
	UserGPUs int
	// Unsaved says whether jobs that do not save may be taken on trial, which may stop them.
	Unsaved sched.Unsaved
}

// Decider is EaCO.
type Decider struct {
	*share.Company
	p Params

	failed map[kind]bool  // kinds of jobs for which nothing was found in this walk
	users  map[string]int // GPUs held, by user; only where limited
}

// kind are jobs for which the walk finds the same, as long as no deadline, their own or for want of slack another's,
// says where they may go and they were taken off nothing.
type kind struct {
	model string
	util  float32
	gpus  int32
	types sched.TypeSet
	memGB float64
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
	c := share.NewCompany(p.Known, share.Limits{Rule: share.Rule{Use: p.Use, Memory: p.Memory, Most: p.Most},
		Slow: p.Slow, Patience: p.Patience, Alone: p.Alone, Parallel: p.Parallel, Unsaved: p.Unsaved})
	c.ByClass(p.Class)
	return &Decider{Company: c, p: p, failed: make(map[kind]bool), users: make(map[string]int)}, nil
}

// fill puts defaults where nothing is given.
func (p *Params) fill() {
	p.Use, p.Memory = cmp.Or(p.Use, share.DefaultThreshold), cmp.Or(p.Memory, share.DefaultThreshold)
	p.Slow, p.Patience = cmp.Or(p.Slow, share.DefaultSlow), cmp.Or(p.Patience, share.DefaultPatience)
	p.Most, p.Alone = cmp.Or(p.Most, share.DefaultMost), cmp.Or(p.Alone, 1)
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

// Decide ends trials, then looks at the queue if anything changed.
func (d *Decider) Decide(v *sched.View, out *sched.Desired) {
	d.Trials(v, out)
	if d.Rise(v) || d.Dirty {
		d.Dirty = false
		d.walk(v, out)
	}
	out.WakeBy(d.Rises())
}

// walk serves the queue: by class, then arrival. A job for which there is no room is passed over.
func (d *Decider) walk(v *sched.View, out *sched.Desired) {
	clear(d.failed)
	if d.p.UserGPUs > 0 {
		clear(d.users)
		for id := range d.Held {
			d.users[v.Jobs[id].Spec.User] += len(d.Held[id])
		}
	}
	for _, id := range slices.Clone(d.Waiting) {
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
	j, late := &v.Jobs[id], d.Late(v, id)
	if late && d.Flag(id) {
		out.Notes = append(out.Notes, sched.Note{Job: id, Why: sched.Reason{Code: sched.WhyAtRisk}})
	}
	if late && d.p.LateWait {
		return 0
	}
	n := d.NeedOf(v, id, late)
	k := kind{j.Spec.Model, j.Spec.Util, j.Spec.GPUs.Want, j.Spec.Types, n.MemGB, n.Share,
		!d.p.Unsaved.Protects(j), n.Share && j.Spec.Deadline > 0}
	if d.failed[k] {
		return 0
	}
	d.Slack = false
	set := d.First(v, n, func(gpus []sched.GPUID) bool { return d.Admits(v, id, gpus).Code == share.Admitted })
	if set == nil {
		d.failed[k] = !n.Share || !k.due && !d.Undone(id) && !d.Slack
		return 0
	}
	d.Give(v, id, set, n.Share, out)
	return len(set)
}

// Format names what is saved.
func (*Decider) Format() string { return "eaco/1" }
