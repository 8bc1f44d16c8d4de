package gavel

import "slices"

// keep is fifo: places are kept until their jobs are done, in the order of the jobs' numbers. The place of a job that
// is done goes to the head of the queue if that fits into what is left by those before; what is free then is filled in
// order, up to the first that does not fit.
//
// Source: policies/fifo.py, mode base.
func (r *run) keep() {
	queue := slices.DeleteFunc(slices.Clone(r.jobs), func(j *job) bool { return slices.Contains(r.kept, j.alone) })
	free := r.GPUs
	var next []*place
	for _, p := range r.kept {
		if !p.gone() {
			next = append(next, p)
			free -= p.gpus()
			continue
		}
		if len(queue) == 0 {
			continue
		}
		head := queue[0]
		queue = queue[1:]
		if head.Kind.GPUs <= free {
			next = append(next, head.alone)
			free -= head.Kind.GPUs
		}
	}
	for free > 0 && len(queue) > 0 && queue[0].Kind.GPUs <= free {
		next = append(next, queue[0].alone)
		free -= queue[0].Kind.GPUs
		queue = queue[1:]
	}
	slices.SortFunc(next, func(a, b *place) int { return a.jobs[0].number - b.jobs[0].number })
	r.kept = next
	for _, p := range next {
		p.share = 1
	}
}

// fill gives whole shares in order, up to the first job that does not fit; that one is passed over, and fifo_packed
// then pairs those behind it.
//
// Source: policies/fifo.py, modes perf and packing.
func (r *run) fill() {
	queue, free := r.jobs, r.GPUs
	var filled []*place
	for free > 0 && len(queue) > 0 {
		head := queue[0]
		queue = queue[1:]
		if head.Kind.GPUs > free {
			break
		}
		filled = append(filled, head.alone)
		free -= head.Kind.GPUs
	}
	if r.Policy == FIFOPacked {
		filled = r.pack(filled, queue)
	}
	for _, p := range filled {
		p.share = 1
	}
}

// packingThreshold is the combined throughput above which a pair is worth it.
const packingThreshold = 1.5

// pack pairs each job of queue, in order, with the job that runs alone with which it gets most done; it ends with the
// first for which none is good enough.
func (r *run) pack(filled []*place, queue []*job) []*place {
	for _, j := range queue {
		best, most := (*place)(nil), packingThreshold
		for _, p := range filled {
			if len(p.jobs) > 1 || p.gpus() != j.Kind.GPUs {
				continue
			}
			pair := r.pairOf(p.jobs[0], j)
			if x := pair.combined(); x > most {
				best, most = pair, x
			}
		}
		if best == nil {
			break
		}
		filled = slices.DeleteFunc(filled, func(p *place) bool {
			return p == best.jobs[0].alone || p == best.jobs[1].alone
		})
		filled = append(filled, best)
	}
	return filled
}

// pairOf returns the place of two jobs.
func (r *run) pairOf(a, b *job) *place {
	if a.number > b.number {
		a, b = b, a
	}
	i := slices.IndexFunc(r.places, func(p *place) bool { return len(p.jobs) == 2 && p.jobs[0] == a && p.jobs[1] == b })
	return r.places[i]
}

// combined returns the sum over its jobs of shared over alone throughput.
func (p *place) combined() float64 {
	sum := 0.0
	for k, j := range p.jobs {
		sum += p.rates[k] / j.alone.rates[0]
	}
	return sum
}
