package pipeline

import (
	"slices"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

// Why says why job j of v does not run, on demand: it changes nothing and is to be called between two instants, with
// the Decider that decided last. Of one that is not made of Stages only the View is known. The cost grows with jobs and
// GPUs.
func Why(v *sched.View, dec sched.Decider, j sched.JobID) explain.Waiting {
	w, free := explain.OfView(v, j)
	if w.Code == explain.WaitArray {
		w.Jobs = explain.OpenTasks(v, j)
	}
	if !free {
		return w
	}
	if p := pipelineOf(dec); p != nil && int(j) < len(p.books.jobs) && p.books.jobs[j].in == waiting {
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
	n, known := p.s.starts(v, id)
	w := explain.Room(v, id, n)
	w.Unmeasured = !known
	order := p.ranks.all(&p.books, v.Now.Seconds())
	w.Ahead = slices.DeleteFunc(order[:slices.Index(order, id):len(order)], func(o sched.JobID) bool {
		return p.books.jobs[o].in != waiting
	})
	if whyInTurn(p, v, id, n, &w, &lazyLedger{}); w.Code == explain.WaitBusy {
		w.Jobs = rankedHolders(order, w.Jobs)
		if p.s.Preempt {
			w.Until = p.protection.freedAt(v, &p.books, id, w.Jobs)
		}
	}
	return w
}

// lazyLedger is a ledger of a View that is made once it is asked for.
type lazyLedger struct{ made *sched.Ledger }

func (l *lazyLedger) of(v *sched.View) *sched.Ledger {
	if l.made == nil {
		l.made = sched.NewLedger(v)
	}
	return l.made
}

// whyInTurn completes w, which says of the numbers of GPUs alone why job id is not started with n of them, and who is
// ahead of it.
func whyInTurn(p *Pipeline, v *sched.View, id sched.JobID, n int, w *explain.Waiting, l *lazyLedger) {
	if certain := whyWhoever(p, v, id, n, w); certain {
		return
	}
	first, stops := p.firstMisfit(v, l, w.Ahead)
	switch {
	case stops:
		w.Code, w.Jobs = explain.WaitBehind, []sched.JobID{first}
	case w.Code == explain.WaitBusy:
	case !p.s.Place.Fits(v, l.of(v), id, n):
		w.Code = explain.WaitFragmented
	case p.walk.free.mayBar(v, p.s.Unsaved, id):
		w.Code, w.Jobs = explain.WaitReserved, []sched.JobID{p.walk.free.job}
	case p.s.Allocate != nil && p.dirty && !p.s.atTurn(v.Now):
		// something happened, such as its arrival, since they were divided
		w.Code, w.Until = explain.WaitUndecided, nextMultiple(v.Now, p.s.Round)
	case p.s.Allocate != nil:
		w.Code = explain.WaitUngranted
	case first != sched.None && !p.s.mayTake(v, l.of(v), id, n):
		w.Code, w.Jobs = explain.WaitReserved, []sched.JobID{first}
	default:
		w.Code, w.Until = explain.WaitUndecided, p.wake
	}
}

// whyWhoever completes w where what is true of the job whoever ranks before it binds it, and reports whether it does.
func whyWhoever(p *Pipeline, v *sched.View, id sched.JobID, n int, w *explain.Waiting) bool {
	switch {
	case w.Code == explain.WaitTooWide:
	case p.s.overQuota(v, id, n):
		*w = p.s.whyQuota(v, id, *w)
	case w.Code == explain.WaitRented, w.Code == explain.WaitUnusable:
	case !p.canEverFit(v, id):
		w.Code, w.Jobs = explain.WaitNeverFits, nil
	default:
		return false
	}
	return true
}

// starts returns the fewest GPUs that job id would be started with, as far as that can be said, and whether it is as
// narrow as the job allows where its speed is known; see sched.Narrowest.
func (s *Stages) starts(v *sched.View, id sched.JobID) (gpus int, known bool) {
	if a, ok := s.Allocate.(sched.Narrowest); ok {
		n, measured := a.Least(v, id)
		return int(n), measured
	}
	return s.least(v, id), true
}

// overQuota reports whether the user of job id may not hold n GPUs more.
func (s *Stages) overQuota(v *sched.View, id sched.JobID, n int) bool {
	return s.UserLimit > 0 && userHolds(v, id)+n > s.UserLimit
}

func userHolds(v *sched.View, id sched.JobID) (gpus int) {
	for o := range v.Jobs {
		if v.Jobs[o].Spec.User == v.Jobs[id].Spec.User {
			gpus += len(v.Jobs[o].Target)
		}
	}
	return gpus
}

// whyQuota says what the user of job id holds.
func (s *Stages) whyQuota(v *sched.View, id sched.JobID, w explain.Waiting) explain.Waiting {
	w.Code, w.Have, w.Limit, w.Jobs = explain.WaitQuota, int32(userHolds(v, id)), int32(s.UserLimit), nil
	for o := range v.Jobs {
		if j := &v.Jobs[o]; len(j.Target) > 0 && j.Spec.User == v.Jobs[id].Spec.User {
			w.Jobs = append(w.Jobs, sched.JobID(o))
		}
	}
	return w
}

// firstMisfit goes down the waiting jobs ahead and returns the first that does not fit, as Admit then hears,, or None,
// and whether that ends a walk. Admit is left as it is when the turn of the job behind them comes.
func (p *Pipeline) firstMisfit(v *sched.View, lazy *lazyLedger, ahead []sched.JobID) (first sched.JobID, stops bool) {
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
	l := lazy.of(v)
	p.s.Admit.Begin(v, l)
	for _, id := range ahead {
		if n := width(v, id); p.s.overQuota(v, id, n) || p.s.Place.Fits(v, l, id, n) ||
			!p.s.Block && !p.canEverFit(v, id) {
			continue
		}
		return id, p.s.Admit.Misfit(v, l, id)
	}
	return sched.None, false
}

// mayTake reports whether Admit lets job id take the n GPUs that the placement would give it.
func (s *Stages) mayTake(v *sched.View, l *sched.Ledger, id sched.JobID, n int) bool {
	gpus, ok := s.Place.Place(v, l, id, n, nil)
	slices.Sort(gpus)
	return ok && s.Admit.May(v, id, gpus)
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
