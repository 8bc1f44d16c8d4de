package pollux

import "math"

// model is what Pollux learns of a job: how long steps take, from all that were seen, and the latest statistics of the
// gradient.
type model struct {
	on            bool
	seen          []observation
	widest        int // GPUs of any observation
	perf          perf
	sqr, variance float64
}

// observation is the mean time of steps on so many nodes and GPUs with so many samples on each.
type observation struct {
	nodes, gpus, local int
	step, sync         float64
}

func (m *model) fitted() bool { return len(m.seen) > 0 }

// observe takes in a step. What is already known is not fitted again.
func (m *model) observe(nodes, gpus, local int, step, sync, sqr, variance float64) {
	m.sqr, m.variance = sqr, variance
	for _, o := range m.seen {
		if o.nodes == nodes && o.gpus == gpus && o.local == local {
			return
		}
	}
	m.seen = append(m.seen, observation{nodes, gpus, local, step, sync})
	m.widest = max(m.widest, gpus)
	m.perf = fit(m.seen)
}

// batchPoints is how many batch sizes are tried, in geometric progression.
const batchPoints = 50

// optimize returns the best goodput, in samples per second at the efficiency of the smallest batch size, and the
// samples on each GPU and micro-batches but the last that reach it. Source: specification boa.md, 3.5.
func (m *model) optimize(a *App, nodes, gpus int) (goodput float64, local, accum int) {
	low, high := float64(max(a.Start, a.MinPerGPU*gpus)), float64(a.Max)
	network := m.perf.network(nodes, gpus)
	lastLocal, lastAccum := 0, 0
	for i := range batchPoints {
		each := low * math.Pow(high/low, float64(i)/(batchPoints-1)) / float64(gpus)
		micro := int(math.Ceil(each/float64(a.MaxPerGPU)-1e-8)) - 1
		if gpus == 1 && each > float64(a.Start)+1e-8 {
			micro = max(micro, 1)
		}
		size := int(math.Ceil(each/float64(micro+1) - 1e-8))
		if size == lastLocal && micro == lastAccum {
			continue
		}
		lastLocal, lastAccum = size, micro
		x := 0.0
		if a.MinPerGPU <= size && size <= a.MaxPerGPU {
			x = m.goodput(a, gpus, size, micro, network)
		}
		if x > goodput || i == 0 {
			goodput, local, accum = x, size, micro
		}
	}
	return goodput, local, accum
}

// goodput is throughput times efficiency.
func (m *model) goodput(a *App, gpus, local, accum int, network float64) float64 {
	batch := float64(gpus * local * (accum + 1))
	compute := m.perf.compute(local)
	seconds := float64(float64(accum)*compute) + m.perf.overlap(compute, network)
	scale := batch / float64(a.Start)
	gain := 1.0
	if d := m.variance/scale + m.sqr; d > 0 {
		gain = (m.variance + m.sqr) / d
	}
	return batch / seconds * (gain / scale)
}

// perf holds the parameters of Pollux's throughput model:
//
//	compute = computeA + computeB × samples on a GPU
//	network = a + b × max(GPUs - 2, 0) by nodes: nodeA, nodeB across, localA, localB inside one; none on one GPU
//	step    = (compute^gamma + network^gamma)^(1/gamma)
//
// Source: specification boa.md, 3.5.
type perf struct{ computeA, computeB, nodeA, nodeB, localA, localB, gamma float64 }

// tiny stands for nothing where a logarithm is taken.
const tiny = 1e-8

func (p *perf) compute(local int) float64 { return p.computeA + float64(p.computeB*float64(local)) }

func (p *perf) network(nodes, gpus int) float64 {
	more := max(float64(gpus-2), tiny)
	switch {
	case nodes > 1:
		return p.nodeA + float64(p.nodeB*more)
	case gpus > 1:
		return p.localA + float64(p.localB*more)
	}
	return tiny + tiny*tiny
}

// overlap is the time of a step.
func (p *perf) overlap(compute, network float64) float64 {
	large, small := compute, network
	if large < small {
		large, small = small, large
	}
	return large * math.Pow(1+math.Pow(small/large, p.gamma), 1/p.gamma)
}
