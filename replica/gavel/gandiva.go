package gavel

import (
	"slices"

	"github.com/trainyard/trainyard/internal/mersenne"
)

// spread is gandiva: if all jobs fit, each gets an equal share of the cluster; otherwise they are paired at random,
// pairs that get less done than one job would are dissolved, and pairs and jobs left alone get equal shares.
//
// Source: policies/gandiva.py.
func (r *run) spread() {
	asked := 0
	for _, j := range r.jobs {
		asked += j.Kind.GPUs
	}
	r.dissolve()
	var who []*place
	if asked <= r.GPUs {
		for _, j := range r.jobs {
			who = append(who, j.alone)
		}
	} else {
		r.pair()
		for _, j := range r.order {
			if p := r.pairs[j]; !slices.Contains(who, p) {
				who = append(who, p)
			}
		}
	}
	for _, p := range who {
		p.share = min(float64(r.GPUs)/float64(len(who))/float64(p.gpus()), 1)
	}
}

// dissolve forgets jobs that are done, with their partners, pairs that are not worth it, and those left alone.
func (r *run) dissolve() {
	r.order = slices.DeleteFunc(r.order, func(j *job) bool {
		p := r.pairs[j]
		if !p.gone() && len(p.jobs) == 2 && p.runs() && p.combined() >= 1 {
			return false
		}
		delete(r.pairs, j)
		return true
	})
}

// pair draws pairs of equal width among those that have no partner; as many draws as there are jobs.
func (r *run) pair() {
	if r.pairs == nil {
		r.pairs = make(map[*job]*place)
	}
	free := slices.DeleteFunc(slices.Clone(r.jobs), func(j *job) bool { return r.pairs[j] != nil })
	assign := func(j *job, p *place) {
		r.pairs[j] = p
		r.order = append(r.order, j)
	}
	for range len(free) {
		if len(free) < 2 {
			break
		}
		var two []*job
		mersenne.Sample(r.random, slices.Clone(free), 2, func(j *job) { two = append(two, j) })
		a, b := two[0], two[1]
		if a.Kind.GPUs != b.Kind.GPUs {
			continue
		}
		free = slices.DeleteFunc(free, func(j *job) bool { return j == a || j == b })
		p := r.pairOf(a, b)
		assign(a, p)
		assign(b, p)
	}
	for _, j := range free {
		assign(j, j.alone)
	}
}
