package pipeline

import (
	"slices"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

var (
	_ sched.Explainer = (*Pipeline)(nil)
	_ sched.Explainer = (*composed)(nil)
)

// Explain has the stages say their figures of job id.
func (p *Pipeline) Explain(v *sched.View, id sched.JobID, say func(sched.Fact)) {
	for _, stage := range []any{p.s.Order, p.s.Allocate, p.s.Place, p.s.Admit, p.s.Move} {
		explainPart(stage, v, id, say)
	}
}

// Explain has the Decider and its parts say their figures of job id.
func (c *composed) Explain(v *sched.View, id sched.JobID, say func(sched.Fact)) {
	explainPart(c.Decider, v, id, say)
	for _, l := range c.before {
		explainPart(l, v, id, say)
	}
	for _, s := range c.provision {
		if p, ok := c.Decider.(*Pipeline); !ok || p.s.Allocate != any(s) { // else it has spoken as a stage
			explainPart(s, v, id, say)
		}
	}
}

func explainPart(part any, v *sched.View, id sched.JobID, say func(sched.Fact)) {
	if e, ok := part.(sched.Explainer); ok {
		e.Explain(v, id, say)
	}
}

// Why says why job j of v does not run, on demand: it changes nothing and is to be called between two instants, with the
// Decider that decided last. Of one that is not made of Stages only the View tells. The cost grows with jobs and GPUs.
func Why(v *sched.View, dec sched.Decider, j sched.JobID) explain.Waiting {
	w, free := explain.OfView(v, j)
	if !free {
		return w
	}
	if p := pipelineOf(dec); p != nil && int(j) < len(p.jobs) && p.jobs[j].in == waiting {
		return p.why(v, j)
	}
	w = explain.Room(v, j, int(v.Jobs[j].Spec.GPUs.Min))
	if w.Code == explain.NotWaiting {
		w.Code = explain.WaitSystem
	}
	return w
}

// why says why job id, which waits for GPUs, was given none: it goes down the order as a walk would, on a ledger of its
// own. What is true of the job whoever ranks before it is said first.
func (p *Pipeline) why(v *sched.View, id sched.JobID) explain.Waiting {
	n, known := p.starts(v, id)
	w := explain.Room(v, id, n)
	w.Unmeasured = !known
	order := p.ranks(v)
	w.Ahead = slices.DeleteFunc(order[:slices.Index(order, id):len(order)], func(o sched.JobID) bool { return p.jobs[o].in != waiting })
	switch {
	case w.Code == explain.WaitTooWide:
		return w
	case p.overQuota(v, id, n):
		return p.whyQuota(v, id, w)
	case w.Code == explain.WaitRented, w.Code == explain.WaitUnusable:
		return w
	case !p.canEverFit(v, id):
		w.Code, w.Jobs = explain.WaitNeverFits, nil
		return w
	}
	l := sched.NewLedger(v)
	first, stops := p.firstMisfit(v, l, w.Ahead)
	switch {
	case stops:
		w.Code, w.Jobs = explain.WaitBehind, []sched.JobID{first}
	case w.Code == explain.WaitBusy:
		w.Jobs = rankedHolders(order, w.Jobs)
		w.Until = p.freedAt(v, id, w.Jobs)
	case !p.s.Place.Fits(v, l, id, n):
		w.Code = explain.WaitFragmented
	case p.s.Allocate != nil && p.dirty && !p.atTurn(v.Now): // something happened, such as its arrival, since they were divided
		w.Code, w.Until = explain.WaitUndecided, nextMultiple(v.Now, p.s.Round)
	case p.s.Allocate != nil:
		w.Code = explain.WaitUngranted
	case first != sched.None && !p.mayTake(v, l, id, n):
		w.Code, w.Jobs = explain.WaitReserved, []sched.JobID{first}
	default:
		w.Code, w.Until = explain.WaitUndecided, p.wake
	}
	return w
}

// starts returns the fewest GPUs that job id would be started with, as far as that can be told, and whether it is as narrow as the
// job allows where its speed is known; see sched.Narrowest.
func (p *Pipeline) starts(v *sched.View, id sched.JobID) (gpus int, known bool) {
	if a, ok := p.s.Allocate.(sched.Narrowest); ok {
		n, measured := a.Least(v, id)
		return int(n), measured
	}
	return p.least(v, id), true
}

// ranks returns the jobs that wait or hold GPUs, best rank first, by the keys as they were asked for last.
func (p *Pipeline) ranks(v *sched.View) []sched.JobID {
	var list []sched.JobID
	if p.whole() {
		list = slices.Clone(p.list)
	} else {
		for id := range p.jobs {
			list = append(list, sched.JobID(id))
		}
	}
	list = slices.DeleteFunc(list, func(id sched.JobID) bool { return p.jobs[id].in == away })
	p.sort(list, v.Now.Seconds())
	return list
}

// overQuota reports whether the user of job id may not hold n GPUs more.
func (p *Pipeline) overQuota(v *sched.View, id sched.JobID, n int) bool {
	return p.s.UserLimit > 0 && p.userHolds(v, id)+n > p.s.UserLimit
}

func (p *Pipeline) userHolds(v *sched.View, id sched.JobID) (gpus int) {
	for o := range v.Jobs {
		if v.Jobs[o].Spec.User == v.Jobs[id].Spec.User {
			gpus += len(v.Jobs[o].Target)
		}
	}
	return gpus
}

// whyQuota says what the user of job id holds.
func (p *Pipeline) whyQuota(v *sched.View, id sched.JobID, w explain.Waiting) explain.Waiting {
	w.Code, w.Have, w.Limit, w.Jobs = explain.WaitQuota, int32(p.userHolds(v, id)), int32(p.s.UserLimit), nil
	for o := range v.Jobs {
		if j := &v.Jobs[o]; len(j.Target) > 0 && j.Spec.User == v.Jobs[id].Spec.User {
			w.Jobs = append(w.Jobs, sched.JobID(o))
		}
	}
	return w
}

// firstMisfit goes down the waiting jobs ahead and returns the first that Admit is told does not fit, or None, and whether
// that ends a walk. Admit is left as it is when the turn of the job behind them comes.
func (p *Pipeline) firstMisfit(v *sched.View, l *sched.Ledger, ahead []sched.JobID) (first sched.JobID, stops bool) {
	if a, ok := p.s.Allocate.(sched.Narrowest); ok {
		for _, id := range ahead {
			if a.Holds(v, id) {
				return id, true
			}
		}
		return sched.None, false
	}
	if p.s.Admit == nil || p.s.Allocate != nil {
		return sched.None, false
	}
	p.s.Admit.Begin(v, l)
	for _, id := range ahead {
		if n := width(v, id); p.overQuota(v, id, n) || p.s.Place.Fits(v, l, id, n) || !p.s.Block && !p.canEverFit(v, id) {
			continue
		}
		return id, p.s.Admit.Misfit(v, l, id)
	}
	return sched.None, false
}

// mayTake reports whether Admit lets job id take the n GPUs that the placement would give it.
func (p *Pipeline) mayTake(v *sched.View, l *sched.Ledger, id sched.JobID, n int) bool {
	gpus, ok := p.s.Place.Place(v, l, id, n, nil)
	slices.Sort(gpus)
	return ok && p.s.Admit.May(v, id, gpus)
}

// rankedHolders returns holders in the order of their ranks; those without one come last.
func rankedHolders(order, holders []sched.JobID) []sched.JobID {
	at := make(map[sched.JobID]int, len(order))
	for i, id := range order {
		at[id] = i - len(order) // below 0, as those without one have
	}
	slices.SortStableFunc(holders, func(a, b sched.JobID) int { return at[a] - at[b] })
	return holders
}

// freedAt returns when the first of the holders that rank behind job id may be preempted for it, having run for MinRun; 0 if
// there is none, or that time has come.
func (p *Pipeline) freedAt(v *sched.View, id sched.JobID, holders []sched.JobID) (at sched.Time) {
	for _, h := range holders {
		behind := p.s.Preempt && beforeAt(&p.jobs[id], &p.jobs[h], id, h, v.Now.Seconds())
		if until := p.protectedUntil(v, h); behind && until > v.Now && (at == 0 || until < at) {
			at = until
		}
	}
	return at
}
