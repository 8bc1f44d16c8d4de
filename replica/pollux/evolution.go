package pollux

import (
	"math/rand/v2"
	"slices"
)

// evolution is the artifact's Pollux: NSGA-II over states, from the best ones of the round before.
//
// Source: Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II", IEEE TEC 2002, as in pymoo with
// its defaults; operators and fitness as released, and in the specification boa.md, 3.5.
type evolution struct {
	source *rand.PCG
	rng    *rand.Rand // draws from source
	search Search
	jobs   []*job     // of the round before, in the order of its states
	nodes  int        // likewise
	words  int        // of a row, likewise
	states [][]uint64 // likewise: the best, none of which is better in both objectives than another
}

func newEvolution(p Params) *evolution {
	source := rand.NewPCG(p.Seed, 0)
	return &evolution{source: source, rng: rand.New(source), search: p.Search}
}

func (e *evolution) divide(r *run) ([][]share, error) {
	p := newProblem(r, r.nodes)
	best := e.evolve(p)
	e.jobs, e.nodes, e.words, e.states = p.jobs, p.nodes, p.words, e.states[:0]
	for _, s := range best {
		e.states = append(e.states, s.x)
	}
	chosen := fittest(best)
	held := make([][]share, len(r.all))
	for i, j := range p.jobs {
		for n := range p.nodes {
			if g := at(p.row(chosen.x, i), n); g > 0 {
				held[j.index] = append(held[j.index], share{n, g})
			}
		}
	}
	of := make([][]share, len(r.active))
	for i, j := range r.active {
		of[i] = held[j.index]
	}
	return of, nil
}

// fittest returns the state of the largest fitness, the first of several.
func fittest(states []*state) *state {
	best := states[0]
	for _, s := range states {
		if s.f[0] < best.f[0] {
			best = s
		}
	}
	return best
}

// state is one member of the population.
type state struct {
	x     []uint64
	hash  uint64
	f     [2]float64 // to be minimized
	front int        // 0: no one is better in both
	apart float64    // crowding distance inside the front
}

// evolve returns the first front of the last generation.
func (e *evolution) evolve(p *problem) []*state {
	var pool []*state // memory of those that died
	alive := make(map[uint64]bool)
	var population []*state
	for _, x := range e.start(p) {
		f := p.settle(x, e.rng)
		if h := hash(x); !alive[h] {
			alive[h] = true
			population = append(population, &state{x: x, hash: h, f: f})
		}
	}
	population = survive(population, e.search.Population, &pool)
	for range e.search.Generations - 1 {
		children := e.breed(p, population, alive, &pool)
		if len(children) == 0 {
			break
		}
		population = survive(append(population, children...), e.search.Population, &pool)
		clear(alive)
		for _, s := range population {
			alive[s.hash] = true
		}
	}
	n := 0
	for n < len(population) && population[n].front == 0 {
		n++
	}
	return population[:n]
}

// start returns the states of the round before, for the jobs and nodes of now; if there was none, what is held.
func (e *evolution) start(p *problem) (states [][]uint64) {
	if e.states == nil {
		return [][]uint64{slices.Clone(p.base)}
	}
	was := make(map[*job]int, len(e.jobs))
	for i, j := range e.jobs {
		was[j] = i
	}
	for _, old := range e.states {
		x := make([]uint64, len(p.base))
		for i, j := range p.jobs {
			if k, ok := was[j]; ok {
				for n := range min(p.nodes, e.nodes) {
					add(p.row(x, i), n, at(old[k*e.words:(k+1)*e.words], n))
				}
			}
		}
		states = append(states, x)
	}
	return states
}

// Chances of pymoo.
const (
	crossover = 0.9
	attempts  = 100 // at filling a generation, where children are like others that live
)

// breed returns as many children as the population may have, none like another or like a parent.
func (e *evolution) breed(p *problem, parents []*state, alive map[uint64]bool, pool *[]*state) (children []*state) {
	for range attempts {
		before := len(children)
		for len(children) < e.search.Population {
			a, b := e.tournament(parents), e.tournament(parents)
			pair := [2]*state{clone(parents[a], pool), clone(parents[b], pool)}
			if e.rng.Float64() < crossover {
				x, y := pair[0].x, pair[1].x
				for i := range e.rng.IntN(len(p.jobs)) * p.words {
					x[i], y[i] = y[i], x[i]
				}
			}
			added := 0
			for _, child := range pair {
				p.mutate(child.x, e.rng)
				child.f = p.settle(child.x, e.rng)
				child.hash = hash(child.x)
				if alive[child.hash] || len(children) == e.search.Population {
					*pool = append(*pool, child)
					continue
				}
				alive[child.hash] = true
				added++
				children = append(children, child)
			}
			if added == 0 {
				break
			}
		}
		if len(children) == e.search.Population || len(children) == before && before > 0 {
			break
		}
	}
	return children
}

// tournament returns the better of two drawn from the population: who is better in both objectives, or farther from
// others.
func (e *evolution) tournament(population []*state) int {
	a, b := e.rng.IntN(len(population)), e.rng.IntN(len(population))
	s, t := population[a], population[b]
	switch {
	case dominates(s.f, t.f):
		return a
	case dominates(t.f, s.f):
		return b
	case s.apart > t.apart:
		return a
	case t.apart > s.apart || e.rng.Uint32()&1 == 0:
		return b
	}
	return a
}

// clone copies a state into memory of the pool, if there is any.
func clone(s *state, pool *[]*state) *state {
	if n := len(*pool); n > 0 {
		t := (*pool)[n-1]
		*pool = (*pool)[:n-1]
		copy(t.x, s.x)
		return t
	}
	return &state{x: slices.Clone(s.x)}
}

// hash distinguishes states: that two differ and have equal hashes is not to be expected in the life of a cluster.
func hash(x []uint64) uint64 {
	h := uint64(len(x))
	for _, w := range x {
		h = mix(h ^ w)
	}
	return h
}

// mix is the finisher of SplitMix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
