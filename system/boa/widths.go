package boa

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
)

// widths knows how wide each job is to run: it keeps each job's path through its phases, by the plan or the price.
type widths struct {
	p     Params
	menu  menu
	plan  planning
	spend spending
	began sched.Time // when the first job arrived; Never: none has
	seen  arrivals
	jobs  []route // by JobID

	changed sched.Changes
}

// route is a job's way through its phases.
type route struct {
	version uint32 // of the plan it follows; 0 = it has none
	from    int32  // phase that path[0] is for
	path    price.Path
	fresh   bool  // gpus and ahead are as of the job's last event
	gpus    int32 // wanted now
	ahead   bool  // the width is going to change
}

var _ allocate.Wants = (*widths)(nil)

// ErrBudget says that there is no budget, or none that can be.
var ErrBudget = errors.New("want GPUs rented on average, > 0")

func newWidths(p Params) (*widths, error) {
	w := &widths{p: p, menu: newMenu(p), plan: newPlanning(p), spend: spending{epoch: p.Epoch}, began: sched.Never}
	switch {
	case p.Month != (price.MonthRule{}) && !p.Priced:
		return nil, errors.New("a budget by month with information other than price, want information=price")
	case p.Month == (price.MonthRule{}) && !(p.Budget > 0 && p.Budget < math.Inf(1)):
		return nil, fmt.Errorf("budget %v, %w", p.Budget, ErrBudget)
	case p.Priced:
		return w, w.spend.steer(p.Budget, p.Month)
	case p.Mix != nil:
		return w, w.plan.known(p.Mix, &w.menu)
	}
	return w, nil
}

// version numbers what paths follow: the price where that is steered, else the plan.
func (w *widths) version() uint32 {
	if w.spend.control != nil {
		return w.spend.version
	}
	return w.plan.version
}

// price returns what GPU time is worth now, that of the start where the plan knows none.
func (w *widths) price() float64 {
	switch {
	case w.spend.control != nil:
		return w.spend.reported
	case w.plan.plan != nil && w.plan.plan.Price > 0:
		return w.plan.plan.Price
	}
	return startPrice
}

// Want returns the width of job j in the phase that it is in. A job of which nothing is known runs as it asks.
func (w *widths) Want(v *sched.View, j sched.JobID) (gpus int32, c sched.Config) {
	return w.look(v, j).gpus, sched.Config{}
}

// Narrower reports whether job j can run on fewer GPUs than it wants.
func (w *widths) Narrower(v *sched.View, j sched.JobID, gpus int32) (c sched.Config, ok bool) {
	chain, phase, _ := w.menu.curves.Chain(v, j)
	if can := w.p.Unsaved.Widths(&v.Jobs[j]); chain == nil || !can.Has(int(gpus)) {
		return sched.Config{}, can.Has(int(gpus))
	}
	speed := chain[phase].Speed
	return sched.Config{}, int(gpus) < len(speed) && speed[gpus] > 0
}

// changes reports whether the width of job j is going to change in a later phase.
func (w *widths) changes(v *sched.View, j sched.JobID) bool { return w.look(v, j).ahead }

// look brings what is known of job j up to date: it changes at the job's own events, and with plan or price.
func (w *widths) look(v *sched.View, j sched.JobID) *route {
	r := w.route(j)
	if r.fresh && r.version == w.version() {
		return r
	}
	w.changed.Note(j)
	spec := v.Jobs[j].Spec
	chain, phase, done := w.menu.curves.Chain(v, j)
	r.gpus, r.ahead, r.fresh = spec.GPUs.Want, false, true
	w.menu.offerFor(chain)
	if chain != nil && w.follow(v, j, r, chain, phase, done) {
		left := r.path[phase-int(r.from):]
		r.gpus = int32(w.menu.widths[left[0]])
		r.ahead = slices.ContainsFunc(left, func(i int) bool { return i != left[0] })
	}
	r.version = w.version()
	can := w.p.Unsaved.Widths(&v.Jobs[j])
	r.gpus, r.ahead = min(max(r.gpus, can.Min), can.Max), r.ahead && can.Min < can.Max
	return r
}

func (w *widths) route(j sched.JobID) *route {
	for int(j) >= len(w.jobs) {
		w.jobs = append(w.jobs, route{})
	}
	return &w.jobs[j]
}

// follow has r hold a path from phase on, or from before it, and reports whether there is one. A job is given its path
// once, and again whenever plan or price change, its user wants it otherwise, or it has lost more work than the path is
// for.
func (w *widths) follow(v *sched.View, j sched.JobID, r *route, chain speedup.Chain, phase int, done float64) bool {
	if r.version == w.version() && phase >= int(r.from) && phase < int(r.from)+len(r.path) {
		return true
	}
	job := &v.Jobs[j]
	weight := w.menu.weight(job.Spec)
	at := price.State{Phase: phase, Done: done, Config: slices.Index(w.menu.widths, len(job.Target))}
	if w.spend.control != nil {
		class := w.menu.priced(job.Spec.Model, chain)
		r.path, r.from = class.Best(w.spend.reported/weight, at, r.path), int32(phase)
		return true
	}
	plan := w.plan.plan
	if plan == nil {
		return false
	}
	i := w.plan.classFor(job.Spec.Model, weight)
	if i < 0 || len(w.plan.classes[i].Times) != len(chain) {
		return false
	}
	c := &w.plan.classes[i]
	mine := cmp.Or(c.Weight, 1) == weight
	if plan.Price == 0 || mine && len(r.path) == 0 && job.Attempts == 0 { // or the plan has no price to choose by
		r.path, r.from = append(r.path[:0], w.plan.whole(i, len(r.path) == 0)...), 0
		return phase < len(r.path) // a plan may be kept that is older than the classes
	}
	r.path, r.from = c.Best(plan.Price*cmp.Or(c.Weight, 1)/weight, at, r.path), int32(phase)
	return true
}

// Observe takes in arrivals, of what changes about jobs, and of what is rented. It looks at plan
// and price when it is time.
func (w *widths) Observe(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.JobArrived:
		w.arrived(v, e.Job)
	case sched.AttemptStarted, sched.Progressed, sched.EpochEnded, sched.Saved:
		w.route(e.Job).fresh = false
	case sched.JobChanged:
		*w.route(e.Job) = route{} // its path was for what it was worth, and could take
	case sched.AttemptEnded, sched.JobCommanded, sched.Rejected, sched.StartFailed:
		w.route(e.Job).fresh = false
		if v.Jobs[e.Job].State == sched.Done {
			w.jobs[e.Job] = route{}
		}
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged, sched.Ordered, sched.Moved:
		w.spend.meter.read(v)
	}
	if w.next() <= v.Now {
		w.turn(v)
	}
}

// arrived counts job j.
func (w *widths) arrived(v *sched.View, j sched.JobID) {
	if w.began == sched.Never {
		w.began, w.spend.looked = v.Now, v.Now
		w.plan.due, w.spend.look = v.Now.Add(w.plan.period), v.Now.Add(tick)
		w.spend.meter.At = v.Now
	}
	if int(j) >= cap(w.jobs) { // as far as the engine expects jobs
		w.jobs = slices.Grow(w.jobs, cap(v.Jobs)-len(w.jobs))
	}
	spec := v.Jobs[j].Spec
	w.seen.add(j, spec.Model, w.menu.weight(spec))
}

// next returns when plan and price are to be looked at again.
func (w *widths) next() sched.Time {
	if w.began == sched.Never || w.p.Mix != nil && w.p.Fixed {
		return sched.Never
	}
	return w.spend.next()
}

// turn looks at what was spent, and moves the price or the plan by it.
func (w *widths) turn(v *sched.View) {
	every := tick
	if w.p.Mix != nil {
		every = longTick
	}
	paid, passed := w.spend.take(v.Now, every)
	if w.spend.control != nil {
		w.spend.move(v.Now, paid, w.seen.response(v, &w.menu))
		return
	}
	if !w.p.Fixed {
		w.plan.correct(paid, passed)
	}
	if w.plan.due <= v.Now && w.p.Mix == nil {
		w.count(v)
		w.plan.renew()
	} else if w.plan.moved() {
		w.plan.renew()
	}
}

// count estimates rates, sizes and curves from what has arrived so far.
func (w *widths) count(v *sched.View) {
	p := &w.plan
	for p.due <= v.Now {
		if w.p.asPublished && v.Now.Sub(w.began) >= slower*p.period {
			p.period *= slower
		}
		p.due = v.Now.Add(p.period)
	}
	p.classes, p.plans = w.seen.classes(v, &w.menu, v.Now.Sub(w.began).Seconds(), p.classes[:0]), nil
}
