package pollux

import "math"

// fit finds the parameters that explain what was seen: the least sum of
//
//	root mean square error of log compute + the same of log step
//	+ 0.001 (gamma - 1)² + 0.01 ((nodeB/nodeA)² + (localB/localA)²)
//
// Parameters are at least tiny, gamma is in 1..10. What nothing was seen of is taken to be free: computeA is half the
// compute where all steps had as many samples, network terms are tiny where there were none.
//
// Source: specification boa.md, 3.5. Deviation: the released code uses L-BFGS-B on the parameters; ours is a projected
// quasi-Newton method on their logarithms, from the same start. They may end at different minima.
func fit(seen []observation) perf {
	f := newFitting(seen)
	f.minimize()
	p := f.perf()
	if !f.across { // what is unknown across nodes is no better than inside one
		p.nodeA, p.nodeB = max(p.nodeA, 1.1*p.localA), max(p.nodeB, 1.1*p.localB)
	}
	return p
}

// Parameters of a fitting, in the order of perf: logarithms but for gamma.
const (
	computeA = iota
	computeB
	nodeA
	nodeB
	localA
	localB
	gamma
	parameters
)

type vector [parameters]float64

// fitting is one fit.
type fitting struct {
	seen         []observation
	logCompute   []float64 // of seen
	logStep      []float64
	low, high    vector
	fixed        [parameters]bool
	x            vector
	across       bool
	accumE, optE []float64 // scratch: errors
}

func newFitting(seen []observation) *fitting {
	f := &fitting{seen: seen, accumE: make([]float64, len(seen)), optE: make([]float64, len(seen))}
	oneSize, inside, many, mean := true, false, false, 0.0
	for _, o := range seen {
		f.logCompute = append(f.logCompute, math.Log(max(o.step-o.sync, tiny)))
		f.logStep = append(f.logStep, math.Log(o.step))
		oneSize = oneSize && o.local == seen[0].local
		f.across = f.across || o.nodes > 1
		inside = inside || o.nodes == 1 && o.gpus > 1
		many = many || o.gpus > 2
		mean += (o.step - o.sync) / float64(len(seen))
	}
	for i := range parameters {
		f.low[i], f.high[i] = math.Log(tiny), math.Log(1/tiny)
		f.x[i] = math.Log(0.1)
		if i%2 == 1 {
			f.x[i] = math.Log(0.01)
		}
	}
	f.low[gamma], f.high[gamma], f.x[gamma] = 1, 10, 1.001
	fix := func(i int, to float64) { f.x[i], f.fixed[i] = math.Log(max(to, tiny)), true }
	if oneSize {
		fix(computeA, mean/2)
	}
	if !f.across {
		fix(nodeA, tiny)
		fix(nodeB, tiny)
	}
	if !inside {
		fix(localA, tiny)
		fix(localB, tiny)
	}
	if !many {
		fix(nodeB, tiny)
		fix(localB, tiny)
	}
	return f
}

func (f *fitting) perf() perf { return perfOf(&f.x) }

func perfOf(x *vector) perf {
	return perf{math.Exp(x[computeA]), math.Exp(x[computeB]), math.Exp(x[nodeA]), math.Exp(x[nodeB]),
		math.Exp(x[localA]),
		math.Exp(x[localB]), x[gamma]}
}

// value returns the sum to be minimized at x, and its gradient.
func (f *fitting) value(x *vector) (sum float64, gradient vector) {
	p, n := perfOf(x), float64(len(f.seen))
	squares, stepSquares := 0.0, 0.0
	for i, o := range f.seen {
		compute := p.compute(o.local)
		f.accumE[i] = math.Log(compute) - f.logCompute[i]
		f.optE[i] = math.Log(p.overlap(compute, p.network(o.nodes, o.gpus))) - f.logStep[i]
		squares += float64(f.accumE[i] * f.accumE[i])
		stepSquares += float64(f.optE[i] * f.optE[i])
	}
	e1, e2 := math.Sqrt(squares/n), math.Sqrt(stepSquares/n)
	for i, o := range f.seen {
		f.slope(&gradient, &p, o, f.accumE[i]/(n*max(e1, 1e-12)), f.optE[i]/(n*max(e2, 1e-12)))
	}
	node, local := p.nodeB/p.nodeA, p.localB/p.localA
	node, local = float64(node*node), float64(local*local)
	gradient[nodeA] -= 0.02 * node
	gradient[nodeB] += 0.02 * node
	gradient[localA] -= 0.02 * local
	gradient[localB] += 0.02 * local
	gradient[gamma] += 0.002 * (p.gamma - 1)
	for i, fixed := range f.fixed {
		if fixed {
			gradient[i] = 0
		}
	}
	return e1 + e2 + float64(1e-3*(p.gamma-1)*(p.gamma-1)) + float64(1e-2*(node+local)), gradient
}

// slope adds what one observation has to do with the gradient, given the weights of its errors of log compute and log
// step.
func (f *fitting) slope(g *vector, p *perf, o observation, ofCompute, ofStep float64) {
	compute, network := p.compute(o.local), p.network(o.nodes, o.gpus)
	ratio := math.Pow(network/compute, p.gamma)
	share := 1 / (1 + ratio) // of compute in step^gamma
	logStep := math.Log(p.overlap(compute, network))
	byCompute := ofCompute + float64(ofStep*share)
	g[computeA] += byCompute * p.computeA / compute
	g[computeB] += byCompute * p.computeB * float64(o.local) / compute
	g[gamma] += ofStep * (float64(share*math.Log(compute)) + float64((1-share)*math.Log(network)) - logStep) / p.gamma
	byNetwork := ofStep * (1 - share) / network
	more := max(float64(o.gpus-2), tiny)
	switch {
	case o.nodes > 1:
		g[nodeA] += byNetwork * p.nodeA
		g[nodeB] += byNetwork * p.nodeB * more
	case o.gpus > 1:
		g[localA] += byNetwork * p.localA
		g[localB] += byNetwork * p.localB * more
	}
}
