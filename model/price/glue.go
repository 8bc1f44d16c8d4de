package price

import (
	"errors"
	"math/rand/v2"
)

// The parameters of the published search. Source: the authors' code, as specs of BOA, sections 2.3 and 3.2, report it.
const (
	GlueDraws = 30   // seeded draws of how many phases to merge
	shrink    = 0.99 // of the budget, until what the rounded plan really uses is within it
)

// ErrNoDraw says that no draw of Glue gave a plan within the budget. The authors then publish no width.
var ErrNoDraw = errors.New("price: no draw of merged phases is within the budget")

// Glue is the authors' way: for each class draw how many consecutive phases are merged into one, between 1 and a tenth
// of them; solve without restarts; round the continuous width of the mixed unit to the nearest on its hull; count
// restarts, and solve again with less budget until what is used is within budget. Of the draws it keeps the plan of
// least value.
type Glue struct {
	classes []Class
	least   float64
	draws   []draw
}

// draw is classes with phases merged.
type draw struct {
	frontier  *Frontier
	stretches []stretch // by unit
}

// stretch is a run of phases from..to-1 of a class.
type stretch struct{ class, from, to int }

// NewGlue draws what to merge, from seed alone, for classes that are not to be changed.
func NewGlue(classes []Class, seed uint64) (*Glue, error) {
	if err := validate(classes); err != nil {
		return nil, err
	}
	g := &Glue{classes: classes, least: leastOf(classes)}
	rng := rand.New(rand.NewPCG(seed, 0))
	merge := make([]int, len(classes))
	for range GlueDraws {
		for i := range classes {
			merge[i] = 1 + rng.IntN((len(classes[i].Times)+9)/10)
		}
		if d, ok := merged(classes, merge); ok {
			g.draws = append(g.draws, d)
		}
	}
	return g, nil
}

// At returns the plan for a budget. The error is an *InfeasibleError if even the cheapest configurations are too dear,
// otherwise ErrNoDraw.
func (g *Glue) At(budget float64) (*Plan, error) {
	if !(budget >= g.least*(1-equal)) {
		return nil, &InfeasibleError{budget, g.least}
	}
	var best *Plan
	for i := range g.draws {
		if p := g.within(&g.draws[i], budget); p != nil && (best == nil || p.Value < best.Value) {
			best = p
		}
	}
	if best == nil {
		return nil, ErrNoDraw
	}
	return best, nil
}

// leastOf returns what the cheapest configuration of every phase costs, without restarts.
func leastOf(classes []Class) float64 {
	least := 0.0
	for i := range classes {
		c := &classes[i]
		for e := range c.Times {
			least += c.Rate * Hull(c.points(e, e+1, 0))[0].Cost
		}
	}
	return least
}

// merged makes merge[i] phases of class i one. It is false where no configuration can run all phases of a stretch.
func merged(classes []Class, merge []int) (draw, bool) {
	var d draw
	var units []Unit
	for i := range classes {
		c := &classes[i]
		for from := 0; from < len(c.Times); from += merge[i] {
			to := min(from+merge[i], len(c.Times))
			hull := Hull(c.points(from, to, 0))
			if len(hull) == 0 {
				return d, false
			}
			units = append(units, Unit{c.Rate, c.weight(), hull})
			d.stretches = append(d.stretches, stretch{i, from, to})
		}
	}
	d.frontier = NewFrontier(units)
	return d, true
}

// within returns the plan of a draw, nil if no smaller budget makes one that uses at most budget.
func (g *Glue) within(d *draw, budget float64) *Plan {
	for b := budget; ; b *= shrink {
		c, err := d.frontier.At(b)
		if err != nil {
			return nil
		}
		if p := g.plan(d, rounded(d.frontier, &c)); p.Usage <= budget*(1+equal) {
			return p
		}
	}
}

// rounded gives the mixed unit the point of its hull that is nearest in width, of two the narrower. The width of a
// mixture is its cost over its delay.
func rounded(f *Frontier, c *Choice) []int {
	if c.Mixed < 0 {
		return c.At
	}
	a, b := f.units[c.Mixed].Hull[c.At[c.Mixed]], f.units[c.Mixed].Hull[c.At[c.Mixed]+1]
	width := (a.Cost + c.Share*(b.Cost-a.Cost)) / (a.Delay + c.Share*(b.Delay-a.Delay))
	if b.Cost/b.Delay-width < width-a.Cost/a.Delay {
		c.At[c.Mixed]++
	}
	return c.At
}

// plan gives every phase of a stretch the point of its unit.
func (g *Glue) plan(d *draw, at []int) *Plan {
	p := &Plan{Classes: make([]Mix, len(g.classes))}
	for u, s := range d.stretches {
		m := &p.Classes[s.class]
		for range s.to - s.from {
			m.Path = append(m.Path, d.frontier.units[u].Hull[at[u]].Option)
		}
	}
	p.sum(g.classes)
	return p
}
