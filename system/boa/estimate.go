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

// Estimates are the plan and what it was made from.
type Estimates struct {
	Plan    *price.Plan   // nil = there is none yet
	Classes []price.Class // that it is for
	Credit  []float64     // of each class, see price.Diffuse
	Asked   float64       // budget that the plan was asked for
	Seen    []seen        // arrivals by application and weight, in order of their first
	Period  time.Duration
	Due     sched.Time // when rates, sizes and curves are estimated anew; Never = not
	Look    sched.Time // when to look at what was spent
	Looked  sched.Time
	Factor  float64 // on the budget, so that what is really spent comes to it
}

// seen is what arrived of an application, of equal weight.
type seen struct {
	Model  string
	Weight float64
	Jobs   int
	Last   sched.JobID // the latest tells the curves
}

// The published recomputation: every ten minutes at first, and ten times as rarely whenever ten periods have passed. Else it
// is every ten minutes.
const (
	firstPeriod = 10 * time.Minute
	slower      = 10
)

// cheapest is the price at which every job takes the widths that cost least GPU time.
const cheapest = mostPrice

// arrived counts job j.
func (w *widths) arrived(v *sched.View, j sched.JobID) {
	if w.Began == sched.Never {
		w.Began, w.Looked = v.Now, v.Now
		w.Due, w.Look = v.Now.Add(w.Period), v.Now.Add(tick)
		w.Meter.At = v.Now
	}
	if int(j) >= cap(w.jobs) { // as far as the engine expects jobs
		w.jobs = slices.Grow(w.jobs, cap(v.Jobs)-len(w.jobs))
	}
	model, weight := v.Jobs[j].Spec.Model, w.weight(v.Jobs[j].Spec)
	i := slices.IndexFunc(w.Seen, func(s seen) bool { return s.Model == model && s.Weight == weight })
	if i < 0 {
		i, w.Seen = len(w.Seen), append(w.Seen, seen{Model: model, Weight: weight})
	}
	w.Seen[i].Jobs++
	w.Seen[i].Last = j
}

// weight returns what a unit of delay of a job is worth, 1 at priority 0.
func (w *widths) weight(spec *sched.JobSpec) float64 {
	if w.p.Weight == 0 || spec.Priority == 0 {
		return 1
	}
	return math.Pow(w.p.Weight, float64(min(max(spec.Priority, -mostSteps), mostSteps)))
}

// mostSteps bounds the steps of priority that count.
const mostSteps = 20

// known makes the one plan of perfect information. A budget that is too small is an error.
func (w *widths) known(classes []speedup.Class) error {
	for _, c := range classes {
		w.Classes = append(w.Classes, w.classOf(c))
	}
	w.Asked = w.p.Budget
	err := w.search()
	if tooLittle := (*price.InfeasibleError)(nil); errors.As(err, &tooLittle) {
		return fmt.Errorf("budget %.6g GPUs, want at least %.6g: what the jobs of this trace take on the widths that cost least", w.p.Budget, tooLittle.Least)
	}
	return err
}

// search makes a plan within the budget asked for.
func (w *widths) search() error {
	if w.plans == nil {
		plans, err := w.p.plan(w.Classes, w.p.Seed)
		if err != nil {
			return err
		}
		w.plans = plans
	}
	plan, err := w.plans.At(w.Asked)
	if err == nil {
		w.adopt(plan)
	}
	return err
}

// planner prepares plans for any budget: optimal ones, those of the authors' search, or equal widths.
type planner func(classes []price.Class, seed uint64) (planned, error)

type planned interface {
	At(budget float64) (*price.Plan, error)
}

func exactly(classes []price.Class, _ uint64) (planned, error) { return price.NewExact(classes) }

func published(classes []price.Class, seed uint64) (planned, error) {
	return price.NewGlue(classes, seed)
}

func equally(classes []price.Class, _ uint64) (planned, error) { return equal(classes), nil }

type equal []price.Class

// At gives all the same width.
func (e equal) At(budget float64) (*price.Plan, error) { return price.EqualWidth(e, budget) }

func (w *widths) adopt(plan *price.Plan) {
	w.Plan, w.Version = plan, w.Version+1
	w.Credit = append(w.Credit, make([]float64, max(0, len(w.Classes)-len(w.Credit)))...)
}

// Bounds of Factor, and how fast it moves: that of the price controller. Ours.
const (
	leastFactor, mostFactor = 0.25, 4
	gainPerHour             = 0.2
)

// correct moves the factor on the budget by what was spent in so many hours. The authors' code has such a factor; how it
// moves is ours: as the price does.
func (w *widths) correct(spent, hours float64) {
	if w.Plan != nil && hours > 0 && !w.p.Fixed {
		w.Factor = 1 / price.Steer(1/w.Factor, gainPerHour*hours, spent, w.p.Budget*hours)
		w.Factor = min(max(w.Factor, leastFactor), mostFactor)
	}
}

// estimate makes a plan from what has arrived so far when it is time, or for another budget from what was estimated before,
// or is known.
func (w *widths) estimate(v *sched.View) {
	asked := w.p.Budget * w.Factor
	if w.Due <= v.Now && w.p.Known == nil {
		w.count(v)
	} else if w.Plan == nil || math.Abs(asked-w.Asked) <= notable*w.Asked {
		return
	}
	if len(w.Classes) == 0 {
		return
	}
	w.Asked = asked
	err := w.search()
	if errors.Is(err, price.ErrNoDraw) && w.Plan != nil && len(w.Plan.Classes) == len(w.Classes) {
		return // the authors go on with the widths they have
	}
	if err != nil {
		w.frugal()
	}
}

// frugal has everybody take what costs least: the budget is too small. Curves that make no sense leave no plan, and jobs run
// as they ask.
func (w *widths) frugal() {
	w.Plan = nil
	w.Version++
	if x, err := price.NewExact(w.Classes); err == nil {
		w.adopt(x.AtPrice(cheapest))
	}
}

// count estimates rates, sizes and curves.
func (w *widths) count(v *sched.View) {
	for w.Due <= v.Now {
		if w.p.asPublished && v.Now.Sub(w.Began) >= slower*w.Period {
			w.Period *= slower
		}
		w.Due = v.Now.Add(w.Period)
	}
	w.Classes, w.plans = w.arrivals(v, v.Now.Sub(w.Began).Seconds(), w.Classes[:0]), nil
}

// arrivals appends the classes of the jobs that arrived within so many seconds.
func (w *widths) arrivals(v *sched.View, seconds float64, dst []price.Class) []price.Class {
	for _, s := range w.Seen {
		if chain, _, _ := w.p.Curves.Chain(v, s.Last); chain != nil {
			c := w.classOf(speedup.Class{Model: s.Model, Rate: float64(s.Jobs) / seconds, Chain: chain})
			c.Weight = s.Weight
			dst = append(dst, c)
		}
	}
	return dst
}
