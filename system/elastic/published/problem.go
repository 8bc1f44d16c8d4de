package published

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// floor is added to every speedup, so that a job without GPUs counts as a thousandth of a node.
const floor = 1e-3

// mostNodes bounds the nodes of a job.
const mostNodes = 16

// problem is what Pollux decides in one round. A state gives the GPUs of each job on each node, jobs×nodes bytes.
type problem struct {
	jobs    []*job // least attained service first, then by submission
	nodes   int
	per     int       // GPUs of a node
	meet    bool      // gangs on several nodes may meet
	limits  []int     // largest width of each job
	factors []float64 // what a speedup counts for where the job would be restarted
	base    []uint8   // what jobs hold
	shared  []float64 // goodput of each job on its fair share; 0: nothing is known of it
	fair    int       // GPUs of a fair share
	known   [][]float64
}

func newProblem(r *run, nodes int) *problem {
	p := &problem{jobs: slices.Clone(r.active), nodes: nodes, per: r.GPUsPerNode, meet: r.Meet}
	slices.SortStableFunc(p.jobs, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.GPUSeconds, b.GPUSeconds), cmp.Compare(a.Submit, b.Submit))
	})
	p.base = make([]uint8, len(p.jobs)*nodes)
	p.fair = ceilDiv(nodes*p.per, len(p.jobs))
	for i, j := range p.jobs {
		for _, s := range j.held {
			if s.node < nodes {
				p.base[i*nodes+s.node] = uint8(s.gpus)
			}
		}
		p.limits = append(p.limits, j.limit(nodes*p.per))
		age, delay := float64(r.now-j.Submit), float64(DefaultRestart)
		p.factors = append(p.factors, max(age-delay*float64(j.Restarts), 0)/(age+delay))
		shared := 0.0
		if j.learnt.fitted() {
			shared, _, _ = j.learnt.optimize(j.App, 1, p.fair)
		}
		p.shared = append(p.shared, shared)
		p.known = append(p.known, nil)
	}
	return p
}

// limit is the largest width that is tried: twice what has been seen.
func (j *job) limit(gpus int) int {
	if j.App.OneGPU {
		return 1
	}
	return min(max(2*j.learnt.widest, 1), gpus, j.App.Max/j.App.MinPerGPU)
}

// speedup of the ith job over its fair share, which counts as being on one node.
func (p *problem) speedup(i, nodes, gpus int) float64 {
	if gpus == 0 {
		return 0
	}
	j := p.jobs[i]
	if !j.learnt.fitted() {
		return float64(gpus) / float64(p.fair)
	}
	if p.known[i] == nil {
		p.known[i] = make([]float64, (p.limits[i]+1)*(min(p.nodes, p.limits[i])+1))
	}
	at := &p.known[i][nodes*(p.limits[i]+1)+gpus]
	if *at == 0 {
		goodput, _, _ := j.learnt.optimize(j.App, nodes, gpus)
		*at = goodput / p.shared[i]
	}
	return *at
}

// evaluate returns what is minimized: the fitness and the utility of a state, both negative.
//
// Fitness is the power mean, exponent -1, of the jobs' speedups over a node's share, times their restart factors where they
// would be restarted. Utility is the speedup for each GPU of the nodes in use.
func (p *problem) evaluate(x []uint8) (f [2]float64) {
	inverse, sum := 0.0, 0.0
	busy := 0
	for n := range p.nodes {
		for i := range p.jobs {
			if x[i*p.nodes+n] > 0 {
				busy++
				break
			}
		}
	}
	for i := range p.jobs {
		row, base := x[i*p.nodes:(i+1)*p.nodes], p.base[i*p.nodes:(i+1)*p.nodes]
		nodes, gpus, same := 0, 0, true
		for n, g := range row {
			if g > 0 {
				nodes++
				gpus += int(g)
			}
			same = same && g == base[n]
		}
		s := p.speedup(i, nodes, gpus)
		sum += s
		s /= float64(p.per)
		if !same {
			s *= p.factors[i]
		}
		inverse += 1 / (s + floor)
	}
	f[0] = -float64(len(p.jobs)) / inverse
	if busy > 0 {
		f[1] = -sum / float64(busy*p.per)
	}
	return f
}

// mutate resets a tenth of the jobs to what they hold, takes a tenth of what another tenth holds away, and raises about one
// place of every job where GPUs are free, and about one more where it is already.
func (p *problem) mutate(x []uint8, rng *rand.Rand) {
	free := make([]int, p.nodes, maxNodes)
	for n := range free {
		free[n] = p.per
	}
	for i := range p.jobs {
		row := x[i*p.nodes : (i+1)*p.nodes]
		draw := rng.Uint64()
		if uint32(draw) < tenth {
			copy(row, p.base[i*p.nodes:])
		}
		thin := uint32(draw>>32) < tenth
		for n, g := range row {
			if thin && g > 0 && rng.Uint32() < tenth {
				row[n], g = 0, 0
			}
			free[n] -= int(g)
		}
	}
	open := 0
	for _, f := range free {
		if f > 0 {
			open++
		}
	}
	if open == 0 {
		return
	}
	anywhere := 1 / float64(open)
	for i := range p.jobs {
		p.raise(x[i*p.nodes:(i+1)*p.nodes], free, anywhere, rng)
	}
}

// tenth is a tenth of all values of a uint32.
const tenth = math.MaxUint32/10 + 1

// raise raises some of a job's places on nodes with free GPUs to anything between what is there and a whole node.
func (p *problem) raise(row []uint8, free []int, anywhere float64, rng *rand.Rand) {
	held := 0
	for n, g := range row {
		if g > 0 && free[n] > 0 {
			held++
		}
	}
	there := anywhere
	if held > 0 {
		again := 1 / float64(held)
		there += again - float64(anywhere*again)
	}
	low, high := uint64(anywhere*(1<<16)), uint64(there*(1<<16))
	var draws uint64
	for n, g := range row {
		if free[n] <= 0 {
			continue
		}
		if draws>>16 == 0 { // three draws of 16 bits, the fourth marks the end
			draws = rng.Uint64() | 1<<63
		}
		draw := draws & (1<<16 - 1)
		draws >>= 16
		if draw < low || g > 0 && draw < high {
			row[n] = g + uint8(rng.Uint32N(uint32(p.per-int(g)+1)))
		}
	}
}

// repair makes a state possible: of gangs on several nodes one for each node, no job above its limit, no node above its GPUs.
// Whoever comes first, with the least attained service, keeps what it has; where a job is too wide, nodes are cut at
// random.
func (p *problem) repair(x []uint8, rng *rand.Rand) {
	taken, used := make([]bool, p.nodes, maxNodes), make([]int, p.nodes, maxNodes)
	for i := range p.jobs {
		row := x[i*p.nodes : (i+1)*p.nodes]
		nodes, gpus := 0, 0
		for _, g := range row {
			if g > 0 {
				nodes++
			}
		}
		for n, g := range row {
			if g == 0 {
				continue
			}
			if nodes > 1 && !p.meet {
				if taken[n] {
					row[n] = 0
					continue
				}
				taken[n] = true
			}
			gpus += int(g)
		}
		if gpus > p.limits[i] || nodes > mostNodes {
			p.cut(row, p.limits[i], rng)
		}
		for n, g := range row {
			row[n] = uint8(min(int(g), p.per-used[n]))
			used[n] += int(row[n])
		}
	}
}

// cut goes through the nodes in random order, and keeps GPUs up to the limit on at most mostNodes of them.
func (p *problem) cut(row []uint8, limit int, rng *rand.Rand) {
	order := make([]int, len(row), maxNodes)
	for n := range order {
		order[n] = n
	}
	rng.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
	nodes := 0
	for _, n := range order {
		g := min(int(row[n]), limit)
		if g > 0 && nodes == mostNodes {
			g = 0
		}
		if g > 0 {
			nodes++
		}
		row[n] = uint8(g)
		limit -= g
	}
}
