package pipeline

import (
	"slices"

	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// Pipeline is the Decider made of Stages: order, then walk down the order, admitting, placing and preempting on a
// scratch ledger. Its parts own their fields; what a step of the walk needs of them it is given.
type Pipeline struct {
	s     Stages
	learn []sched.Observer // stages that hear events

	books      books      // who holds and who waits
	ranks      ranks      // in which order
	possible   possible   // what could ever fit
	protection protection // who must not be preempted yet
	revisions  revisions  // whose answers may all have changed
	restored   restored   // what was loaded, until the first View
	walk       walk       // the walk under way
	grants     grants     // what the division of GPUs gave in it
	claims     claims     // who may expect to keep what it holds in it

	primed bool // jobs and ledger reflect the view
	stale  bool // the ledger does not: nodes changed, or a target was refused
	dirty  bool // something happened that may change a decision

	asked bool       // it has decided
	wake  sched.Time // and asked to be woken then

	changed sched.Changes // of which jobs it may remember something else
	lost    []sched.JobID // nodeChanged works on it
}

// New returns the Decider of the stages of s that decide about jobs: without its Parts.
func New(s Stages) *Pipeline {
	p := &Pipeline{s: s, protection: protection{minRun: s.MinRun, guard: s.Guard, leave: s.Unsaved,
		rail: s.LossRail, byOrder: s.byOrder(), retry: sched.Never},
		revisions: newRevisions(&s)}
	p.ranks = ranks{order: s.Order, class: s.Class, whole: s.whole(), keepOrder: s.KeepOrder, holders: s.Preempt}
	p.ranks.groups.byClass = s.byOrder()
	p.ranks.turns, _ = s.Order.(sched.Turns)
	p.walk.victims = victims{books: &p.books, ranks: &p.ranks, protection: &p.protection, place: s.Place}
	p.walk.free.on = s.KeepFree && s.Unsaved != sched.StopUnsaved
	p.walk.victims.bound, _ = s.Place.(sched.NodeBound)
	for _, stage := range s.deciding() {
		if o, ok := stage.(sched.Observer); ok {
			p.learn = append(p.learn, o)
		}
	}
	return p
}

var (
	_ sched.Decider = (*Pipeline)(nil)
	_ sched.Waker   = (*Pipeline)(nil)
)

// Observe keeps ledger and indices in step with the log.
func (p *Pipeline) Observe(v *sched.View, e *sched.Event) {
	for _, o := range p.learn {
		o.Observe(v, e)
	}
	if p.primed {
		p.keepInStep(v, e)
	} else {
		p.restored.dirty = true
	}
}

// keepInStep is Observe once jobs and ledger reflect the view.
func (p *Pipeline) keepInStep(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.JobArrived, sched.Released:
		p.track(v, e.Job)
		p.dirty = true
	case sched.AttemptStarted, sched.Progressed:
		p.rekey(v, e.Job)
	case sched.Ordered:
		if sched.ActionKind(e.Code) == sched.Stop {
			p.rekey(v, e.Job) // work stands still from now on
		}
	case sched.AttemptEnded, sched.StartFailed, sched.JobCommanded, sched.Rejected:
		p.follow(v, e.Job)
	case sched.JobChanged:
		p.alter(v, e.Job)
	case sched.Saved: // it may be stopped now, or not any more, and be started at other widths
		if p.protection.leave != sched.StopUnsaved {
			p.alter(v, e.Job)
			p.books.given.forget()
		}
	case sched.Decided:
		p.settleIn(v, e)
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged, sched.Moved, sched.GPUChanged:
		if n := nodeOf(v, e); n != sched.None {
			p.nodeChanged(v, n)
		}
	case sched.EpochEnded:
		p.dirty = p.dirty || p.s.Allocate != nil // what a job is worth giving may have changed
	case sched.Refused:
		p.stale, p.dirty = true, true
	}
}

// nodeOf returns the node that e is about, itself or by one of its GPUs; None if it is about none.
func nodeOf(v *sched.View, e *sched.Event) sched.NodeID {
	if e.Kind == sched.GPUChanged {
		return v.GPUs[int(e.Value)].Node
	}
	return e.Node
}

// nodeChanged follows a node that came, went or changed, and the targets that went with it.
func (p *Pipeline) nodeChanged(v *sched.View, n sched.NodeID) {
	p.dirty, p.claims.old = true, true
	p.books.given.forget()
	p.lost = p.lost[:0]
	for _, id := range p.books.ledger.Holders() {
		if len(v.Jobs[id].Target) == 0 {
			p.lost = append(p.lost, id)
		}
	}
	slices.Sort(p.lost)
	for _, id := range p.lost {
		p.follow(v, id)
	}
	p.stale = p.stale || !p.books.ledger.Refresh(n)
	p.possible.resurvey(v, n)
	p.ranks.groups.forgetFits()
}

// follow brings the books of job id to what its target is after an event that may have taken it away.
func (p *Pipeline) follow(v *sched.View, id sched.JobID) {
	j, x := &v.Jobs[id], &p.books.jobs[id]
	lost := x.in == holding && len(j.Target) == 0
	if x.in == waiting && !j.Eligible() { // others may have waited for it
		p.dirty = true
	}
	if lost {
		p.books.unbook(id)
		p.dirty = true
		if p.ranks.turns != nil {
			p.ranks.turns.Lost(v, id)
		}
	}
	switch {
	case j.State == sched.Done:
		p.untrack(id)
		if p.ranks.turns != nil {
			p.ranks.turns.Left(id)
		}
	case !j.Eligible():
		p.untrack(id)
	case lost:
		p.books.move(id, waiting)
		p.rekey(v, id)
	case x.in == away:
		p.track(v, id)
		p.dirty = true
	default:
		p.rekey(v, id)
	}
}

// alter follows a job that is asked for otherwise: of another shape, at another rank, and maybe without its target.
func (p *Pipeline) alter(v *sched.View, id sched.JobID) {
	p.dirty = true
	if x := &p.books.jobs[id]; x.in != away {
		p.ranks.groups.remove(p.books.jobs, id)
		x.shape = p.ranks.groups.shapeOf(p.s.shape(v, id, x.user))
	}
	p.follow(v, id)
}

// settleIn moves a job whose target was just exchanged to the indices where it belongs now. The ledger knows already,
// unless the exchange was not this pipeline's own.
func (p *Pipeline) settleIn(v *sched.View, e *sched.Event) {
	if e.Target.At != sched.AtOnce {
		return
	}
	if !arena.SameSet(p.books.ledger.Set(e.Job), v.Jobs[e.Job].Target) {
		p.stale = true
		return
	}
	p.reindex(v, e.Job)
}

// track starts to look after job id, if it is eligible.
func (p *Pipeline) track(v *sched.View, id sched.JobID) {
	p.books.grow(id, cap(v.Jobs))
	p.walk.grow(id, cap(v.Jobs))
	j, x := &v.Jobs[id], &p.books.jobs[id]
	if !j.Eligible() || x.in != away {
		return
	}
	user, _ := v.Users.Lookup(j.Spec.User)
	x.shape = p.ranks.groups.shapeOf(p.s.shape(v, id, user))
	p.books.enlist(id, user)
	if p.ranks.whole {
		p.ranks.enlist(&p.books, id)
	}
	p.rekey(v, id)
}

// untrack forgets job id, which holds nothing.
func (p *Pipeline) untrack(id sched.JobID) {
	p.ranks.groups.remove(p.books.jobs, id)
	p.books.move(id, away)
	p.books.jobs[id].due = sched.Never
	p.changed.Note(id)
}

// reindex puts job id where the ledger says it belongs, with a fresh key.
func (p *Pipeline) reindex(v *sched.View, id sched.JobID) {
	p.books.move(id, p.books.standing(id))
	p.rekey(v, id)
}

// rekey asks the order for the rank of job id and moves it to the group of its slope.
func (p *Pipeline) rekey(v *sched.View, id sched.JobID) {
	if p.books.jobs[id].in == away {
		return
	}
	p.changed.Note(id)
	if p.ranks.rekey(v, &p.books, id, p.restored.keys) {
		p.dirty = true
		p.books.given.note(p.books.ledger, p.books.ledger.Set(id))
	}
}

// refresh asks again for the keys that have ceased to hold, in order of time.
func (p *Pipeline) refresh(v *sched.View) {
	if p.revisions.changed() {
		p.renewAll(v)
	}
	for p.ranks.nextDue(&p.books) <= v.Now {
		id := p.ranks.due.Pop().Job
		x := &p.books.jobs[id]
		old := x.key
		x.due = sched.Never
		p.rekey(v, id)
		p.dirty = p.dirty || x.key != old
	}
}

// renewAll asks for all that the stages say of all jobs. Orders remember in which order they were asked.
func (p *Pipeline) renewAll(v *sched.View) {
	p.dirty = true
	p.books.given.forget()
	p.ranks.groups.dissolve(p.books.jobs) // cheaper than one by one; few ranks of holders change
	for _, id := range p.books.present() {
		if p.revisions.reshapes {
			x := &p.books.jobs[id]
			x.shape = p.ranks.groups.shapeOf(p.s.shape(v, id, x.user))
		}
		p.rekey(v, id)
	}
}

// prime takes over what the view shows: at the start, after a Load, after a change of policy.
func (p *Pipeline) prime(v *sched.View) {
	p.books.ledger = sched.NewLedger(v)
	p.primed, p.stale = true, p.restored.stale
	for i := range v.Jobs {
		id := sched.JobID(i)
		p.track(v, id)
		if n := len(v.Jobs[id].Target); n > 0 {
			p.books.count(id, n)
			if p.ranks.turns != nil && !p.restored.is {
				p.ranks.turns.Took(v, id)
			}
			p.reindex(v, id)
		}
	}
	p.possible.survey(v)
	p.ranks.groups.forgetFits()
	p.dirty, p.restored.keys = true, nil
	if p.restored.is {
		p.restored.sort(p.ranks.list)
		p.dirty, p.restored.list = p.restored.dirty, nil
	}
}

// resync rebuilds the ledger from the view after nodes changed or a target was refused.
func (p *Pipeline) resync(v *sched.View) {
	p.books.ledger.Rebuild()
	p.stale, p.claims.old = false, true
	p.books.given.forget()
	clear(p.books.user)
	for _, id := range p.books.present() {
		n := len(v.Jobs[id].Target)
		p.books.count(id, n)
		if n == 0 && p.ranks.turns != nil {
			p.ranks.turns.Lost(v, id) // a target may have been refused; to a job that waits it says nothing new
		}
		p.reindex(v, id)
	}
	p.possible.survey(v)
	p.ranks.groups.forgetFits()
}

// canEverFit reports whether job id would fit the cluster with nothing on it.
func (p *Pipeline) canEverFit(v *sched.View, id sched.JobID) bool {
	return p.possible.fits(v, &p.s, &p.ranks.groups.shapes[p.books.jobs[id].shape], id)
}
