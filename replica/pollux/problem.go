package pollux

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

// problem is what Pollux decides in one round. A state has a row of so many words for each job, and in it a byte for
// each node: the GPUs that the job has there.
type problem struct {
	jobs    []*job // least attained service first, then by submission
	nodes   int
	per     int // GPUs of a node
	words   int
	meet    bool      // gangs on several nodes may meet
	limits  []int     // largest width of each job
	factors []float64 // what a speedup counts for where the job would be restarted
	base    []uint64  // the state of what jobs hold
	shared  []float64 // goodput of each job on its fair share, as on one node
	fair    int       // GPUs of a fair share
	known   [][]float64
	used    []uint64  // scratch: GPUs taken of each node
	taken   []uint64  // scratch: nodes that a gang on several has
	open    []int     // scratch: nodes with free GPUs
	raised  []uint64  // scratch: nodes on which a job is raised
	gaps    []float64 // scratch: chances that a node among the next ones is raised
}

func newProblem(r *run, nodes int) *problem {
	p := &problem{jobs: slices.Clone(r.active), nodes: nodes, per: r.GPUsPerNode, words: ceilDiv(nodes, lanes),
		meet: r.Meet}
	slices.SortStableFunc(p.jobs, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.GPUSeconds, b.GPUSeconds), cmp.Compare(a.Submit, b.Submit))
	})
	p.base = make([]uint64, len(p.jobs)*p.words)
	p.used, p.taken, p.raised = make([]uint64, p.words), make([]uint64, p.words), make([]uint64, p.words)
	p.fair = ceilDiv(nodes*p.per, len(p.jobs))
	for i, j := range p.jobs {
		for _, s := range j.held {
			if s.node < nodes {
				add(p.row(p.base, i), s.node, s.gpus)
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

// row returns the row of the ith job in a state.
func (p *problem) row(x []uint64, i int) []uint64 { return x[i*p.words : (i+1)*p.words] }

// limit is the largest width that is tried: twice what has been seen.
func (j *job) limit(gpus int) int {
	if j.App.OneGPU {
		return 1
	}
	return min(max(2*j.learnt.widest, 1), gpus, j.App.Max/j.App.MinPerGPU)
}

// speedup of the ith job over its fair share.
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

// settle makes a state possible, and returns its fitness and utility, both negative, to be minimized.
//
// Of gangs on several nodes each node has one, no job is above its limit, no node above its GPUs. Whoever comes first,
// with the least attained service, keeps what it has; where a job is too wide, nodes are cut at random.
//
// Fitness is the power mean, exponent -1, of the jobs' speedups over a node's share, times their restart factors where
// they would be restarted. Utility is the speedup for each GPU of the nodes in use.
func (p *problem) settle(x []uint64, rng *rand.Rand) (f [2]float64) {
	clear(p.used)
	clear(p.taken)
	inverse, sum := 0.0, 0.0
	for i := range p.jobs {
		row := p.row(x, i)
		nodes, gpus := p.repair(row, p.limits[i], rng)
		s := p.speedup(i, nodes, gpus)
		sum += s
		s /= float64(p.per)
		if !slices.Equal(row, p.row(p.base, i)) {
			s *= p.factors[i]
		}
		inverse += 1 / (s + floor)
	}
	f[0] = -float64(len(p.jobs)) / inverse
	if busy, _ := count(p.used); busy > 0 {
		f[1] = -sum / float64(busy*p.per)
	}
	return f
}

// repair makes a job's row possible next to those before it, and returns on how many nodes and GPUs it then is.
func (p *problem) repair(row []uint64, limit int, rng *rand.Rand) (nodes, gpus int) {
	nodes, gpus = count(row)
	if nodes > 1 && !p.meet {
		for w, x := range row {
			row[w] = x &^ whole(occupied(x)&p.taken[w])
			p.taken[w] |= occupied(x)
		}
		nodes, gpus = count(row)
	}
	if gpus > limit || nodes > mostNodes {
		p.cut(row, limit, rng)
	}
	cut := false
	for w, x := range row {
		if above(p.used[w]+x, p.per) != 0 {
			row[w] = fit8(x, p.used[w], p.per)
			cut = true
		}
		p.used[w] += row[w]
	}
	if cut || gpus > limit || nodes > mostNodes {
		return count(row)
	}
	return nodes, gpus
}

// cut goes through the nodes in random order, and keeps GPUs up to the limit on at most mostNodes of them.
func (p *problem) cut(row []uint64, limit int, rng *rand.Rand) {
	p.open = p.open[:0]
	for n := range p.nodes {
		if at(row, n) > 0 {
			p.open = append(p.open, n)
		}
	}
	rng.Shuffle(len(p.open), func(a, b int) { p.open[a], p.open[b] = p.open[b], p.open[a] })
	for i, n := range p.open {
		g := at(row, n)
		keep := min(g, limit)
		if i >= mostNodes {
			keep = 0
		}
		add(row, n, keep-g)
		limit -= keep
	}
}

// mutate resets a tenth of the jobs to what they hold, takes a tenth of what another tenth holds away, and raises about
// one place of every job where GPUs are free, and about one more where it is already.
func (p *problem) mutate(x []uint64, rng *rand.Rand) {
	clear(p.used)
	for i := range p.jobs {
		row, draw := p.row(x, i), rng.Uint64()
		if draw&math.MaxUint32 < tenth {
			copy(row, p.row(p.base, i))
		}
		if draw>>32 < tenth {
			p.thin(row, rng)
		}
		for w, gpus := range row {
			p.used[w] += gpus
		}
	}
	p.open, p.gaps = p.open[:0], p.gaps[:0]
	for n := range p.nodes {
		if at(p.used, n) < p.per {
			p.open = append(p.open, n)
		}
	}
	none := 1.0
	for range p.open {
		none *= 1 - 1/float64(len(p.open))
		p.gaps = append(p.gaps, 1-none)
	}
	for i := range p.jobs {
		p.raise(p.row(x, i), rng)
	}
}

// tenth is a tenth of all values of a uint32.
const tenth = 1<<32/10 + 1

func (p *problem) thin(row []uint64, rng *rand.Rand) {
	for n := range p.nodes {
		if g := at(row, n); g > 0 && rng.Uint32() < tenth {
			add(row, n, -g)
		}
	}
}

// raise raises some of a job's places on nodes with free GPUs to anything between what is there and a whole node: any
// of them by a chance of one in their number, and those where the job is by another such chance.
func (p *problem) raise(row []uint64, rng *rand.Rand) {
	clear(p.raised)
	for n := p.gap(0, rng); n < len(p.open); n = p.gap(n+1, rng) {
		add(p.raised, p.open[n], 1)
	}
	held := 0
	for w, x := range row {
		held += bits8(occupied(x) & notFull(p.used[w], p.per))
	}
	for w, x := range row {
		for mask := occupied(x) & notFull(p.used[w], p.per); mask != 0; mask &= mask - 1 {
			if held == 1 || rng.Float64()*float64(held) < 1 {
				p.raised[w] |= mask & -mask >> 7
			}
		}
	}
	for w, mask := range p.raised {
		for ; mask != 0; mask &= mask - 1 {
			n := w*lanes + laneOf(mask)
			if g := at(row, n); g < p.per {
				add(row, n, int(rng.Uint32N(uint32(p.per-g+1))))
			}
		}
	}
}

// gap returns the next open node to be raised, from the given one on: as if each were drawn for, by one draw.
func (p *problem) gap(from int, rng *rand.Rand) int {
	draw := rng.Float64()
	for k, chance := range p.gaps {
		if draw < chance {
			return from + k
		}
	}
	return len(p.open)
}
