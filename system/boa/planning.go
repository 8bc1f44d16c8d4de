package boa

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// planning makes plans within a budget: once, from classes that are known, or again and again, from estimates.
type planning struct {
	find   planner
	seed   uint64
	budget float64 // GPUs on average

	plan    *price.Plan // nil: there is none yet
	classes []price.Class
	plans   planned    // for the present classes; nil: to be made
	credit  []float64  // of each class, see price.Diffuse
	asked   float64    // budget that the plan was asked for
	factor  float64    // on the budget, so that what is really spent comes to it
	due     sched.Time // when rates, sizes and curves are estimated again; Never: not
	period  time.Duration
	version uint32 // raised whenever the plan changes
}

// The published recomputation: every ten minutes at first, and ten times as rarely whenever ten periods have passed.
// Else it is every ten minutes.
const (
	firstPeriod = 10 * time.Minute
	slower      = 10
)

// cheapest is the price at which every job takes the widths that cost least GPU time.
const cheapest = mostPrice

func newPlanning(p Params) planning {
	return planning{find: p.plan, seed: p.Seed, budget: p.Budget, factor: 1, due: sched.Never, period: firstPeriod}
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

// known makes the one plan of perfect information. A budget that is too small is an error.
func (p *planning) known(classes []speedup.Class, m *menu) error {
	for _, c := range classes {
		p.classes = append(p.classes, m.classOf(c))
	}
	p.asked = p.budget
	err := p.search()
	if tooLittle := (*price.InfeasibleError)(nil); errors.As(err, &tooLittle) {
		return fmt.Errorf("budget %.6g GPUs, want at least %.6g: what the jobs of this trace take on the widths that "+
			"cost least", p.budget, tooLittle.Least)
	}
	return err
}

// search makes a plan within the budget asked for.
func (p *planning) search() error {
	if p.plans == nil {
		plans, err := p.find(p.classes, p.seed)
		if err != nil {
			return err
		}
		p.plans = plans
	}
	plan, err := p.plans.At(p.asked)
	if err == nil {
		p.adopt(plan)
	}
	return err
}

func (p *planning) adopt(plan *price.Plan) {
	p.plan, p.version = plan, p.version+1
	p.credit = append(p.credit, make([]float64, max(0, len(p.classes)-len(p.credit)))...)
}

// Bounds of the factor, and how fast it moves: that of the price controller. Ours.
const (
	leastFactor, mostFactor = 0.25, 4
	gainPerHour             = 0.2
)

// correct moves the factor on the budget by what was spent in so many hours. The authors' code has such a factor; how
// it moves is ours: as the price does.
func (p *planning) correct(spent, hours float64) {
	if p.plan != nil && hours > 0 {
		p.factor = 1 / price.Steer(1/p.factor, gainPerHour*hours, spent, p.budget*hours)
		p.factor = min(max(p.factor, leastFactor), mostFactor)
	}
}

// moved reports whether there is a plan, and the budget has moved enough since it was made.
func (p *planning) moved() bool {
	return p.plan != nil && !(math.Abs(p.budget*p.factor-p.asked) <= notable*p.asked)
}

// renew makes a plan from the present classes for the budget of now, if there are any.
func (p *planning) renew() {
	if len(p.classes) == 0 {
		return
	}
	p.asked = p.budget * p.factor
	err := p.search()
	if errors.Is(err, price.ErrNoDraw) && p.plan != nil && len(p.plan.Classes) == len(p.classes) {
		return // the authors go on with the widths they have
	}
	if err != nil {
		p.frugal()
	}
}

// frugal has every job take what costs least: the budget is too small. Curves that make no sense leave no plan, and
// jobs run as they ask.
func (p *planning) frugal() {
	p.plan = nil
	p.version++
	if x, err := price.NewExact(p.classes); err == nil {
		p.adopt(x.AtPrice(cheapest))
	}
}

// classFor returns the class of jobs of a model and weight; where there are none of that weight, as an oracle knows
// none, the first of the model; -1 where there is no class.
func (p *planning) classFor(model string, weight float64) int {
	first := -1
	for i := range p.classes {
		if c := &p.classes[i]; c.Name == model {
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
func (p *planning) whole(i int, first bool) price.Path {
	mix := &p.plan.Classes[i]
	if first && mix.Other != nil {
		var other bool
		if p.credit[i], other = price.Diffuse(p.credit[i], mix.Share); other {
			return mix.Other
		}
	}
	return mix.Path
}
