package boa

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
)

// widths knows how wide each job is to run: it keeps the plan, or the price, and each job's path through its phases.
type widths struct {
	p Params
	state
	jobs    []route                         // by JobID
	plans   planned                         // for the present classes; nil = to be made
	control *price.Controller               // of the price; nil = there is a plan, or none yet
	classes map[*speedup.Phase]*price.Class // by chain, for a price
	offered []int                           // widths to choose from, ascending: the Configs of all classes
}

// state is what is remembered of all jobs together.
type state struct {
	Version uint32 // of the plan, or of the price
	Began   sched.Time
	Estimates
	Meter   meter
	Told    float64 // price at which the present version was made
	Control []byte  // of the controller, when saved
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
	w := &widths{p: p, classes: make(map[*speedup.Phase]*price.Class)}
	w.Began, w.Due, w.Period, w.Factor = sched.Never, sched.Never, firstPeriod, 1
	switch {
	case p.Month != (price.MonthRule{}) && !p.Priced:
		return nil, errors.New("a budget by month with information other than price, want information=price")
	case p.Month == (price.MonthRule{}) && !(p.Budget > 0 && p.Budget < math.Inf(1)):
		return nil, fmt.Errorf("budget %v, %w", p.Budget, ErrBudget)
	case p.Priced:
		return w, w.steer(0)
	case p.Known != nil:
		return w, w.known(p.Known)
	}
	return w, nil
}

// Want returns the width of job j in the phase that it is in. A job of which nothing is known runs as it asks.
func (w *widths) Want(v *sched.View, j sched.JobID) (gpus int32, c sched.Config) {
	return w.look(v, j).gpus, sched.Config{}
}

// Narrower reports whether job j can run on fewer GPUs than it wants.
func (w *widths) Narrower(v *sched.View, j sched.JobID, gpus int32) (c sched.Config, ok bool) {
	chain, phase, _ := w.p.Curves.Chain(v, j)
	if chain == nil {
		return sched.Config{}, v.Jobs[j].Spec.GPUs.Has(int(gpus))
	}
	speed := chain[phase].Speed
	return sched.Config{}, int(gpus) < len(speed) && speed[gpus] > 0
}

// changes reports whether the width of job j is going to change in a later phase.
func (w *widths) changes(v *sched.View, j sched.JobID) bool { return w.look(v, j).ahead }

// look brings what is known of job j up to date: it changes at the job's own events, and with plan or price.
func (w *widths) look(v *sched.View, j sched.JobID) *route {
	r := w.route(j)
	if r.fresh && r.version == w.Version {
		return r
	}
	spec := v.Jobs[j].Spec
	chain, phase, done := w.p.Curves.Chain(v, j)
	r.gpus, r.ahead, r.fresh = spec.GPUs.Want, false, true
	w.offerFor(chain)
	if chain != nil && w.follow(v, j, r, chain, phase, done) {
		left := r.path[phase-int(r.from):]
		r.gpus = int32(w.offered[left[0]])
		r.ahead = slices.ContainsFunc(left, func(i int) bool { return i != left[0] })
	}
	r.version = w.Version
	r.gpus = min(max(r.gpus, spec.GPUs.Min), spec.GPUs.Max)
	return r
}

func (w *widths) route(j sched.JobID) *route {
	for int(j) >= len(w.jobs) {
		w.jobs = append(w.jobs, route{})
	}
	return &w.jobs[j]
}

// follow has r hold a path from phase on, or from before it, and reports whether there is one. A job is given its path once,
// and again whenever plan or price change, its user wants it otherwise, or it has lost more work than the path is for.
func (w *widths) follow(v *sched.View, j sched.JobID, r *route, chain speedup.Chain, phase int, done float64) bool {
	if r.version == w.Version && phase >= int(r.from) && phase < int(r.from)+len(r.path) {
		return true
	}
	job := &v.Jobs[j]
	weight := w.weight(job.Spec)
	at := price.State{Phase: phase, Done: done, Config: slices.Index(w.offered, len(job.Target))}
	if w.control != nil {
		r.path, r.from = w.priced(job.Spec.Model, chain).Best(w.Told/weight, at, r.path), int32(phase)
		return true
	}
	if w.Plan == nil {
		return false
	}
	i := w.classFor(job.Spec.Model, weight)
	if i < 0 || len(w.Classes[i].Times) != len(chain) {
		return false
	}
	mine := cmp.Or(w.Classes[i].Weight, 1) == weight
	if w.Plan.Price == 0 || mine && len(r.path) == 0 && job.Attempts == 0 { // or the plan has no price to choose by
		r.path, r.from = append(r.path[:0], w.whole(i, len(r.path) == 0)...), 0
		return phase < len(r.path) // a plan may be kept that is older than the classes
	}
	c := &w.Classes[i]
	r.path, r.from = c.Best(w.Plan.Price*cmp.Or(c.Weight, 1)/weight, at, r.path), int32(phase)
	return true
}

// classFor returns the class of jobs of a model and weight; where there are none of that weight, as an oracle tells none, the
// first of the model; -1 where there is no class.
func (w *widths) classFor(model string, weight float64) int {
	first := -1
	for i := range w.Classes {
		if c := &w.Classes[i]; c.Name == model {
			if cmp.Or(c.Weight, 1) == weight {
				return i
			}
			if first < 0 {
				first = i
			}
		}
	}
	return first
}

// whole returns the path of the plan for a job of class i. Newcomers of a class with two paths take turns.
func (w *widths) whole(i int, first bool) price.Path {
	mix := &w.Plan.Classes[i]
	if first && mix.Other != nil {
		var other bool
		if w.Credit[i], other = price.Diffuse(w.Credit[i], mix.Share); other {
			return mix.Other
		}
	}
	return mix.Path
}

// priced returns the class of a job with these curves; its rate plays no role.
func (w *widths) priced(model string, chain speedup.Chain) *price.Class {
	c, ok := w.classes[&chain[0]]
	if !ok || c.Restart != w.restart(model).Seconds() { // what a restart costs may have been learned since
		if len(w.classes) >= mostClasses {
			clear(w.classes)
		}
		class := w.classOf(speedup.Class{Model: model, Rate: 1, Chain: chain})
		c = &class
		w.classes[&chain[0]] = c
	}
	return c
}

// mostClasses bounds what is kept of curves that have changed since.
const mostClasses = 64

// offerFor fills in the widths offered, which are the same for all chains.
func (w *widths) offerFor(chain speedup.Chain) {
	if w.offered == nil && chain != nil {
		w.offered = w.offer(len(chain[0].Speed) - 1)
	}
}

// offer returns the widths up to most to choose from: beyond a node whole nodes only, as those that the authors measured on nodes of 4:
// 1, 2, 4, 8, 12 and 16. Where curves are learned those on more than one node are few, 8, 12, 16, 24, 32, 48, ...: every width that
// looks good has to be tried before it is known. Ours.
func (w *widths) offer(most int) []int {
	_, learned := w.p.Curves.(sched.Observer)
	perNode := max(w.p.PerNode, 1)
	var list []int
	for k := 1; k <= most; k++ {
		nodes := k / perNode
		whole := k <= perNode || k%perNode == 0
		few := k <= perNode || bits.OnesCount(uint(nodes)) <= 2 && (nodes&1 == 0 || nodes <= 3)
		if whole && (few || !learned) {
			list = append(list, k)
		}
	}
	return list
}

// restart returns what a change of width costs jobs of a model.
func (w *widths) restart(model string) time.Duration {
	if w.p.asPublished {
		return w.p.Restart(model)
	}
	return w.p.Restart(model) + w.p.Boot
}

// classOf turns an application into a class of the price's, whose Configs are the widths offered. A change of width takes
// nodes that boot, waited and paid for, as well as a restart: the authors count the restart alone.
func (w *widths) classOf(c speedup.Class) price.Class {
	out := price.Class{Name: c.Model, Rate: c.Rate, Restart: w.restart(c.Model).Seconds()}
	w.offerFor(c.Chain)
	for _, k := range w.offered {
		out.Configs = append(out.Configs, price.Config{GPUs: k})
	}
	for _, phase := range c.Chain {
		times := make([]float64, len(w.offered))
		for i, k := range w.offered {
			times[i] = phase.Size / phase.Speed[k] // +Inf where it cannot be run
		}
		out.Times = append(out.Times, times)
	}
	return out
}

// Observe hears of arrivals, of what changes about jobs, and of what is rented; and looks at plan and price when it is time.
func (w *widths) Observe(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.JobArrived:
		w.arrived(v, e.Job)
	case sched.AttemptStarted, sched.Progressed, sched.EpochEnded:
		w.route(e.Job).fresh = false
	case sched.JobChanged:
		*w.route(e.Job) = route{} // its path was for what it was worth, and could take
	case sched.AttemptEnded, sched.JobCommanded, sched.Rejected, sched.StartFailed:
		w.route(e.Job).fresh = false
		if v.Jobs[e.Job].State == sched.Done {
			w.jobs[e.Job] = route{}
		}
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged, sched.Ordered, sched.Moved:
		w.Meter.read(v)
	}
	if w.next() <= v.Now {
		w.turn(v)
	}
}
