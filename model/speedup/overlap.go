package speedup

import "math"

// Overlap is the performance model of AdaptDL and Pollux, a Timer. Times are in seconds:
//
//	compute(m)  = ComputeFixed + ComputePerSample*m
//	sync        = 0 on one GPU; LocalFixed + LocalPerGPU*(k-2) on one node; NetFixed + NetPerGPU*(k-2) on several
//	update      = (accum-1)*compute + (compute^Gamma + sync^Gamma)^(1/Gamma)
//
// with m samples on each of k GPUs. Gamma, from 1 to 10, says how much of computation and synchronisation overlaps: 1 =
// nothing.
//
// Source: specification of BOA, 3.5.
type Overlap struct {
	ComputeFixed, ComputePerSample float64
	NetFixed, NetPerGPU            float64
	LocalFixed, LocalPerGPU        float64
	Gamma                          float64
}

var _ Timer = Overlap{}

// Update returns the seconds of an update.
func (o Overlap) Update(gpus, nodes, perGPU, accum int) float64 {
	compute := o.compute(float64(perGPU))
	return float64(float64(accum-1)*compute) + o.step(compute, gpus, nodes)
}

func (o Overlap) compute(samples float64) float64 {
	return o.ComputeFixed + float64(o.ComputePerSample*samples)
}

// step joins computation and synchronisation. The larger is taken out of the power, which would overflow.
func (o Overlap) step(compute float64, gpus, nodes int) float64 {
	sync := o.sync(gpus, nodes)
	if sync == 0 {
		return compute
	}
	large, small := max(compute, sync), min(compute, sync)
	return large * math.Pow(1+math.Pow(small/large, o.Gamma), 1/o.Gamma)
}

// logStep is the logarithm of step, in a way that takes a fraction of the time.
func (o Overlap) logStep(compute float64, gpus, nodes int) float64 {
	sync := o.sync(gpus, nodes)
	large := math.Log(max(compute, sync))
	if sync == 0 {
		return large
	}
	ratio := math.Log(min(compute, sync)) - large
	return large + math.Log1p(math.Exp2(o.Gamma*ratio*math.Log2E))/o.Gamma
}

func (o Overlap) sync(gpus, nodes int) float64 {
	switch more := float64(gpus - 2); {
	case gpus < 2:
		return 0
	case nodes < 2:
		return o.LocalFixed + float64(o.LocalPerGPU*more)
	default:
		return o.NetFixed + float64(o.NetPerGPU*more)
	}
}

// Timing is a measured step.
type Timing struct {
	GPUs, Nodes, PerGPU int     // all > 0
	Step                float64 // seconds of a micro-batch with synchronisation, > 0
	Compute             float64 // seconds of one without; 0 = not measured
}

// The fit of Overlap: where it starts, and the least any parameter is.
//
// Source: specification of BOA, 3.5.
const (
	startFixed, startPer = 0.1, 0.01
	startGamma           = 1.001
	floor                = 1e-8
	maxGamma             = 10
)

// FitOverlap returns the model that minimises the root mean square error of the logarithm of Compute, plus that of
// Step, plus
//
//	1e-3 (Gamma-1)^2 + 1e-2 ((NetPerGPU/NetFixed)^2 + (LocalPerGPU/LocalFixed)^2)
//
// What was not observed is fixed, so that the model is hopeful about it: with a single number of samples per GPU,
// ComputeFixed is half the mean time to compute (of steps on one GPU where Compute was not measured; of all steps where
// there are none); without steps on several nodes, the Net parameters are at the floor and then raised to 1.1 times the
// Local ones; without steps of several GPUs on one node, the Local ones are at the floor; without more than two GPUs,
// the PerGPU ones are. It panics if there are no timings.
func FitOverlap(timings []Timing) Overlap {
	if len(timings) == 0 {
		panic("speedup: fit without timings")
	}
	f := newFit(timings)
	best, least := f.start, math.Inf(1)
	for _, gamma := range []float64{startGamma, 2} {
		start := f.start
		start[6] = gamma
		if p := f.from(start, fitRounds); f.loss(p) < least {
			best, least = p, f.loss(p)
		}
	}
	return f.hopeful(best)
}

// refit is FitOverlap from what was found before on timings that were not much different, in a tenth of the time: what
// was not observed then starts as it does there.
func (o Overlap) refit(timings []Timing) Overlap {
	f := newFit(timings)
	start, before := f.start, o.params()
	before[6] = max(o.Gamma, startGamma)
	for _, i := range f.free {
		if before[i] > 2*floor {
			start[i] = before[i]
		}
	}
	return f.hopeful(f.from(start, refitRounds))
}

// How often the search starts again.
const fitRounds, refitRounds = 6, 1

// from looks for a minimum near a start.
func (f *fit) from(start params, rounds int) params {
	return f.overlap(start, minimise(func(x []float64) float64 {
		return f.loss(f.overlap(start, x))
	}, f.coordinates(start), rounds))
}

// hopeful takes synchronisation between nodes to be little more than within one, where it was not observed.
func (f *fit) hopeful(p params) Overlap {
	o := p.overlap()
	if !f.network {
		o.NetFixed = max(o.NetFixed, 1.1*o.LocalFixed)
		o.NetPerGPU = max(o.NetPerGPU, 1.1*o.LocalPerGPU)
	}
	return o
}

// params are the parameters in the order of the fields of Overlap.
type params [7]float64

func (p params) overlap() Overlap { return Overlap{p[0], p[1], p[2], p[3], p[4], p[5], p[6]} }

func (o Overlap) params() params {
	return params{o.ComputeFixed, o.ComputePerSample, o.NetFixed, o.NetPerGPU, o.LocalFixed, o.LocalPerGPU, o.Gamma}
}

// fit is a problem of least squares with some of its parameters fixed.
type fit struct {
	timings []Timing
	logs    []float64 // of the steps
	start   params
	free    []int // those that are not fixed
	network bool  // steps on several nodes were observed
}

func newFit(timings []Timing) *fit {
	f := &fit{timings: timings, start: params{startFixed, startPer, startFixed, startPer, startFixed, startPer,
		startGamma}}
	var local, wide, sizes bool
	for _, t := range timings {
		f.logs = append(f.logs, math.Log(t.Step))
		f.network = f.network || t.Nodes > 1
		local = local || t.Nodes == 1 && t.GPUs > 1
		wide = wide || t.GPUs > 2
		sizes = sizes || t.PerGPU != timings[0].PerGPU
	}
	fixed := [7]bool{!sizes, false, !f.network, !f.network || !wide, !local, !local || !wide, !local && !f.network}
	if !sizes {
		f.start[0] = meanCompute(timings) / 2
	}
	for i := range 7 {
		switch {
		case !fixed[i]:
			f.free = append(f.free, i)
		case i > 0 && i < 6:
			f.start[i] = floor
		}
	}
	return f
}

// meanCompute is the mean time to compute as far as it can be reported.
func meanCompute(timings []Timing) float64 {
	var measured, alone, all, nMeasured, nAlone float64
	for _, t := range timings {
		all += t.Step
		if t.GPUs == 1 {
			alone, nAlone = alone+t.Step, nAlone+1
		}
		if t.Compute > 0 {
			measured, nMeasured = measured+t.Compute, nMeasured+1
		}
	}
	switch {
	case nMeasured > 0:
		return measured / nMeasured
	case nAlone > 0:
		return alone / nAlone
	}
	return all / float64(len(timings))
}

// coordinates are the binary logarithms of the free parameters, of Gamma that of what it is above 1: math.Exp differs
// between processors, Exp2 does not.
func (f *fit) coordinates(p params) []float64 {
	x := make([]float64, len(f.free))
	for i, j := range f.free {
		x[i] = math.Log2(p[j])
		if j == 6 {
			x[i] = math.Log2(p[j] - 1)
		}
	}
	return x
}

// overlap puts coordinates x into p, within the bounds.
func (f *fit) overlap(p params, x []float64) params {
	for i, j := range f.free {
		p[j] = max(floor, math.Exp2(min(x[i], 400)))
		if j == 6 {
			p[j] = min(1+math.Exp2(min(x[i], 400)), maxGamma)
		}
	}
	return p
}

// loss is what is minimised.
func (f *fit) loss(p params) float64 {
	o := p.overlap()
	var compute, step, n float64
	for i, t := range f.timings {
		predicted := o.compute(float64(t.PerGPU))
		if t.Compute > 0 {
			e := math.Log(predicted / t.Compute)
			compute, n = compute+float64(e*e), n+1
		}
		e := o.logStep(predicted, t.GPUs, t.Nodes) - f.logs[i]
		step += float64(e * e)
	}
	loss := math.Sqrt(step / float64(len(f.timings)))
	if n > 0 {
		loss += math.Sqrt(compute / n)
	}
	gamma, net, local := o.Gamma-1, o.NetPerGPU/o.NetFixed, o.LocalPerGPU/o.LocalFixed
	return loss + float64(1e-3*gamma*gamma) + float64(1e-2*(float64(net*net)+float64(local*local)))
}
