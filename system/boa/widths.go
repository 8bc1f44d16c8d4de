package boa

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// widths knows how wide each job is to run: it keeps the plan, or the price, and each job's path through its phases.
type widths struct {
	p Params
	state
	jobs    []route                         // by JobID
	control *price.Controller               // nil = there is a plan, or none
	classes map[*speedup.Phase]*price.Class // by chain, for a price
}

// state is what is remembered of all jobs together.
type state struct {
	Version uint32 // of the plan, or of the price
	Classes []price.Class
	Plan    *price.Plan // nil = there is none yet
	Credit  []float64   // of each class, see price.Diffuse
	Seen    []seen      // arrivals by application, in order of their first
	First   sched.Time  // arrival of the first job; Never = none
	Period  time.Duration
	Next    sched.Time // when the plan is made anew; Never = not
	Spent   float64    // GPU-hours rented since Paid
	Paid    sched.Time
	Control []byte // of the controller, when saved
}

// seen is what arrived of an application, and what is known of it.
type seen struct {
	Model string
	Jobs  int
	Chain speedup.Chain
}

// route is a job's way through its phases.
type route struct {
	version uint32 // of the plan it follows; 0 = it has none
	from    int32  // phase that path[0] is for
	path    price.Path
}

// The published recomputation: every ten minutes at first, and ten times as rarely whenever ten periods have passed.
const (
	firstPeriod = 10 * time.Minute
	slower      = 10
)

// startPrice is what one waiting job is worth at first where nothing is known: an eighth of it for each GPU. Ours.
const startPrice = 1. / 8

// tick is how often the controller looks at what was spent. Ours.
const tick = 10 * time.Minute

func newWidths(p Params) (*widths, error) {
	w := &widths{p: p, classes: make(map[*speedup.Phase]*price.Class), state: state{First: sched.Never, Next: sched.Never, Period: firstPeriod}}
	if !(p.Budget > 0) || math.IsInf(p.Budget, 0) {
		return nil, fmt.Errorf("budget %v, want GPUs rented on average, > 0", p.Budget)
	}
	if p.Priced {
		return w, w.steer(0)
	}
	if p.Known != nil {
		return w, w.plan(p.Known)
	}
	return w, nil
}

// steer begins to control the price.
func (w *widths) steer(now sched.Time) (err error) {
	w.control, err = price.NewController(price.Pay{Average: w.p.Budget}, int64(now.Seconds()), startPrice)
	w.Version++
	return err
}

// plan makes a plan for classes. A budget that is too small is an error where all is known, and else met as nearly as can
// be: everybody takes what costs least.
func (w *widths) plan(known []speedup.Class) error {
	w.Classes = w.Classes[:0]
	for _, c := range known {
		w.Classes = append(w.Classes, classOf(c, w.p.Restart(c.Model)))
	}
	x, err := price.NewExact(w.Classes)
	if err != nil {
		return err
	}
	plan, err := w.search(x)
	switch tooLittle := (*price.InfeasibleError)(nil); {
	case errors.As(err, &tooLittle) && w.p.Known != nil:
		return fmt.Errorf("budget %.6g GPUs, want at least %.6g: what the jobs of this trace take on the widths that cost least", w.p.Budget, tooLittle.Least)
	case errors.Is(err, price.ErrNoDraw) && w.Plan != nil && len(w.Plan.Classes) == len(w.Classes):
		return nil // the authors go on with the widths they have
	case err != nil:
		plan = x.AtPrice(cheapest)
		plan.Price = cheapest
	}
	w.Plan, w.Version = plan, w.Version+1
	w.Credit = append(w.Credit, make([]float64, len(w.Classes)-len(w.Credit))...)
	return nil
}

// search looks for a plan within the budget, as the authors do or exactly.
func (w *widths) search(x *price.Exact) (*price.Plan, error) {
	if !w.p.Glue {
		return x.At(w.p.Budget)
	}
	g, err := price.NewGlue(w.Classes, w.p.Seed)
	if err != nil {
		return nil, err
	}
	return g.At(w.p.Budget)
}

// times returns how long a phase takes by width from 1.
func times(p speedup.Phase) []float64 {
	list := make([]float64, 0, len(p.Speed))
	for _, speed := range p.Speed[1:] {
		t := math.Inf(1)
		if speed > 0 {
			t = p.Size / speed
		}
		list = append(list, t)
	}
	return list
}

// Observe counts arrivals and what is rented.
func (w *widths) Observe(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.JobArrived:
		w.arrived(v, e.Job)
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged, sched.Ordered:
		if w.p.Priced {
			w.pay(v)
		}
	}
}

func (w *widths) arrived(v *sched.View, j sched.JobID) {
	if w.First == sched.Never {
		w.First, w.Paid = v.Now, v.Now
		w.Next = v.Now.Add(w.Period)
	}
	model := v.Jobs[j].Spec.Model
	i := slices.IndexFunc(w.Seen, func(s seen) bool { return s.Model == model })
	if i < 0 {
		i = len(w.Seen)
		w.Seen = append(w.Seen, seen{Model: model})
	}
	w.Seen[i].Jobs++
}

// pay adds up the GPUs that are rented.
func (w *widths) pay(v *sched.View) {
	if w.First == sched.Never {
		return
	}
	hours := v.Now.Sub(w.Paid).Hours()
	for i := range v.Pools {
		p := &v.Pools[i]
		w.Spent += float64(max(p.Ordered, p.Nodes)) * float64(p.Spec.GPUs) * hours
	}
	w.Paid = v.Now
}

// refresh makes the plan anew when it is time, or moves the price, and asks to be woken for the next time.
func (w *widths) refresh(v *sched.View, d *sched.Desired) {
	if w.p.Known != nil || w.First == sched.Never {
		return
	}
	for w.Next <= v.Now {
		if w.p.Priced {
			w.pay(v)
			w.control.Spend(int64(v.Now.Seconds()), w.Spent)
			w.Spent, w.Version = 0, w.Version+1
			w.Next = v.Now.Add(tick)
			continue
		}
		w.estimate(v)
		if v.Now.Sub(w.First) >= slower*w.Period {
			w.Period *= slower
		}
		w.Next = v.Now.Add(w.Period)
	}
	d.WakeBy(w.Next)
}

// estimate makes a plan from what has arrived so far.
func (w *widths) estimate(v *sched.View) {
	var known []speedup.Class
	seconds := v.Now.Sub(w.First).Seconds()
	for j := range v.Jobs { // the latest job of each application tells its curves
		if c, _, _ := w.p.Curves.Chain(v, sched.JobID(j)); c != nil {
			i := slices.IndexFunc(w.Seen, func(s seen) bool { return s.Model == v.Jobs[j].Spec.Model })
			w.Seen[i].Chain = c
		}
	}
	for _, s := range w.Seen {
		if s.Chain != nil {
			known = append(known, speedup.Class{Model: s.Model, Rate: float64(s.Jobs) / seconds, Chain: s.Chain})
		}
	}
	if len(known) > 0 {
		if err := w.plan(known); err != nil {
			w.Plan = nil // curves that make no sense: jobs run as they ask
		}
	}
}
