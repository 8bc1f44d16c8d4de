package price

// Mix is how jobs of a class run: a share of them takes a second path. Diffuse says which.
type Mix struct {
	Path  Path
	Other Path    // nil = none
	Share float64 // of jobs on Other, in (0, 1); 0 where there is none
}

// Plan says how the jobs of each class run, and what comes of it in the long run.
type Plan struct {
	Classes []Mix   // one for each class
	Usage   float64 // mean cost per unit of time: GPUs held on average, where their price is 1
	Delay   float64 // mean time of a job, over all classes
	Value   float64 // mean weight x time; Delay where all weights are 1
	// of a unit of cost, in the unit of rate x weight x delay; 0 = the budget is not all needed, or the method knows
	// none
	Price float64
}

// Exact is the optimum for all budgets: phases of classes without restart cost each take a width of their own, other
// classes a path.
type Exact struct {
	classes  []Class
	frontier *Frontier
	units    []member
}

// member is what a unit of the frontier is: a phase of a class, or all of one.
type member struct {
	class, phase int    // phase -1 = all
	paths        []Path // where all
}

// NewExact prepares plans for classes, which are not to be changed.
func NewExact(classes []Class) (*Exact, error) {
	if err := validate(classes); err != nil {
		return nil, err
	}
	x := &Exact{classes: classes}
	var units []Unit
	add := func(class, phase int, hull []Point, paths []Path) {
		c := &classes[class]
		units = append(units, Unit{c.Rate, c.weight(), hull})
		x.units = append(x.units, member{class, phase, paths})
	}
	for i := range classes {
		c := &classes[i]
		if c.Restart > 0 {
			hull, paths := c.Paths()
			add(i, -1, hull, paths)
			continue
		}
		for e := range c.Times {
			add(i, e, Hull(c.points(e, e+1, 0)), nil)
		}
	}
	x.frontier = NewFrontier(units)
	return x, nil
}

// Frontier returns the frontier over all budgets.
func (x *Exact) Frontier() *Frontier { return x.frontier }

// At returns the optimal plan for a budget, which it spends entirely unless nothing is gained by that; one class at
// most has two paths. The error is an *InfeasibleError.
func (x *Exact) At(budget float64) (*Plan, error) {
	c, err := x.frontier.At(budget)
	if err != nil {
		return nil, err
	}
	return x.plan(&c), nil
}

// AtPrice returns the plan at a price: every class takes what Class.Best does at it, whatever the rates.
func (x *Exact) AtPrice(price float64) *Plan {
	c := x.frontier.AtPrice(price)
	return x.plan(&c)
}

// plan turns a choice into paths.
func (x *Exact) plan(c *Choice) *Plan {
	p := &Plan{Classes: make([]Mix, len(x.classes)), Price: c.Price}
	for i := range p.Classes {
		p.Classes[i].Path = make(Path, len(x.classes[i].Times))
	}
	for u := range x.units {
		x.put(c, u, 0, p.Classes[x.units[u].class].Path)
	}
	if u := c.Mixed; u >= 0 {
		m := &p.Classes[x.units[u].class]
		m.Share = c.Share
		m.Other = append(Path(nil), m.Path...)
		x.put(c, u, 1, m.Other)
	}
	p.sum(x.classes)
	return p
}

// put writes into path what unit u takes, steps further than chosen.
func (x *Exact) put(c *Choice, u, steps int, path Path) {
	option := x.frontier.units[u].Hull[c.At[u]+steps].Option
	if m := &x.units[u]; m.phase >= 0 {
		path[m.phase] = option
	} else {
		copy(path, m.paths[option])
	}
}

// sum computes usage, delay and value from the paths.
func (p *Plan) sum(classes []Class) {
	rate := 0.0
	p.Usage, p.Delay, p.Value = 0, 0, 0
	for i := range classes {
		c, m := &classes[i], &p.Classes[i]
		at := c.Along(m.Path)
		if m.Other != nil {
			other := c.Along(m.Other)
			at.Cost += float64(m.Share * (other.Cost - at.Cost))
			at.Delay += float64(m.Share * (other.Delay - at.Delay))
		}
		rate += c.Rate
		p.Usage += float64(c.Rate * at.Cost)
		p.Delay += float64(c.Rate * at.Delay)
		p.Value += float64(c.Rate * c.weight() * at.Delay)
	}
	p.Delay /= rate
	p.Value /= rate
}

// Diffuse spreads a share over whole jobs: it takes the credit left after the last job, 0 at first, and returns that
// after this one, and whether this one takes the other path. After n jobs floor(share x n) did, to rounding.
func Diffuse(credit, share float64) (left float64, other bool) {
	credit += share
	if credit >= 1 {
		return credit - 1, true
	}
	return credit, false
}
