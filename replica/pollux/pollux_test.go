package pollux

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Ensure that the gradient of the fit is its slope.
func TestFitGradient(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	seen := []observation{{1, 1, 32, 0.3, 0}, {1, 4, 32, 0.5, 0.15}, {1, 3, 64, 0.7, 0.1}, {3, 12, 16, 0.9, 0.6},
		{2, 6, 16, 0.8, 0.5}}
	for range 200 {
		f := newFitting(seen)
		for i := range f.x {
			f.x[i] = math.Log(0.001) + 5*r.Float64()
		}
		f.x[gamma] = 1 + 9*r.Float64()
		_, g := f.value(&f.x)
		for i := range g {
			const h = 1e-6
			low, high := f.x, f.x
			low[i], high[i] = f.x[i]-h, f.x[i]+h
			a, _ := f.value(&low)
			b, _ := f.value(&high)
			if slope := (b - a) / (2 * h); math.Abs(slope-g[i]) > 1e-4*(1+math.Abs(slope)) {
				t.Fatalf("parameter %d at %v: slope %v, want %v", i, f.x, g[i], slope)
			}
		}
	}
}

// Ensure that times made by the model are found again.
func TestFitRecovers(t *testing.T) {
	truth := perf{0.05, 0.002, 0.2, 0.01, 0.05, 0.004, 1.6}
	var seen []observation
	for _, o := range []observation{{nodes: 1, gpus: 1}, {nodes: 1, gpus: 2}, {nodes: 1, gpus: 4}, {nodes: 2, gpus: 8},
		{nodes: 4, gpus: 16}, {nodes: 3, gpus: 5}} {
		for _, o.local = range []int{16, 64, 256} {
			compute := truth.compute(o.local)
			o.step = truth.overlap(compute, truth.network(o.nodes, o.gpus))
			o.sync = o.step - compute
			seen = append(seen, o)
		}
	}
	p := fit(seen)
	for _, o := range seen {
		if got := p.overlap(p.compute(o.local), p.network(o.nodes, o.gpus)); math.Abs(got/o.step-1) > 0.02 {
			t.Errorf("%+v: %v s, want %v", o, got, o.step)
		}
	}
}

// Ensure that what was never seen is taken to be free, as released.
func TestFitPriors(t *testing.T) {
	p := fit([]observation{{1, 1, 100, 2, 0}})
	if math.Abs(p.computeA-1) > 1e-9 || math.Abs(p.compute(100)-2) > 1e-3 || p.network(1, 4) > 1e-6 ||
		p.nodeA != 1.1*p.localA {
		t.Errorf("%+v", p)
	}
}

// Ensure that fronts and distances are those of the definitions, whatever the ties.
func TestFrontsTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		var population []*state
		for range 1 + r.IntN(60) {
			population = append(population, &state{f: [2]float64{float64(r.IntN(12)), float64(r.IntN(12))},
				hash: r.Uint64()})
		}
		left := slices.Clone(population)
		want := make(map[*state]int)
		for front := 0; len(left) > 0; front++ {
			var first []*state
			for _, s := range left {
				if !slices.ContainsFunc(left, func(o *state) bool { return dominates(o.f, s.f) }) {
					first = append(first, s)
					want[s] = front
				}
			}
			left = slices.DeleteFunc(left, func(s *state) bool { return slices.Contains(first, s) })
		}
		sortFronts(population)
		for i, s := range population {
			if s.front != want[s] {
				t.Fatalf("%v is in front %d, want %d", s.f, s.front, want[s])
			}
			if i > 0 && s.front < population[i-1].front {
				t.Fatal("fronts are not sorted")
			}
		}
		var pool []*state
		n := 1 + r.IntN(len(population))
		if got := survive(population, n, &pool); len(got) != n || len(got)+len(pool) != len(population) {
			t.Fatalf("%d survive, %d do not, want %d of %d", len(got), len(pool), n, len(population))
		}
	}
}

// Ensure that eight bytes looked at together are what they are one by one.
func TestLanes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		n := 1 + r.IntN(16)
		var x, used uint64
		for k := range lanes {
			x |= r.Uint64N(17) * r.Uint64N(2) << (8 * k)
			used |= r.Uint64N(uint64(n+1)) << (8 * k)
		}
		fitted, nodes, gpus := fit8(x, used, n), 0, 0
		for k := range lanes {
			g, u := x>>(8*k)&255, used>>(8*k)&255
			top := uint64(128) << (8 * k)
			if (occupied(x)&top != 0) != (g > 0) || (above(x, n)&top != 0) != (g > uint64(n)) ||
				(notFull(used, n)&top != 0) != (u < uint64(n)) {
				t.Fatalf("byte %d of %x, used %x, n %d", k, x, used, n)
			}
			if got := fitted >> (8 * k) & 255; got != min(g, uint64(n)-u) {
				t.Fatalf("byte %d of %x next to %x in %d: %d", k, x, used, n, got)
			}
			if g > 0 {
				nodes++
			}
			gpus += int(g)
		}
		if a, b := count([]uint64{x}); a != nodes || b != gpus {
			t.Fatalf("%x: %d nodes, %d GPUs, want %d, %d", x, a, b, nodes, gpus)
		}
	}
}

// Ensure that whatever mutation does, a settled state is possible.
func TestSettledStatesArePossible(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	app := shrinking{even{1, []float64{100}}}.app()
	for range 60 {
		run := &run{Params: Params{GPUsPerNode: 1 + r.IntN(8), Meet: r.IntN(2) == 0}, now: 1000}
		nodes := 1 + r.IntN(20)
		for range 1 + r.IntN(12) {
			j := newJob(&Job{App: app}, 0)
			j.learnt = model{on: true}
			for range r.IntN(4) {
				gpus := 1 + r.IntN(8)
				j.learnt.observe(min(gpus, 1+r.IntN(3)), gpus, 1+r.IntN(20), 1+r.Float64(), r.Float64(), 1, 1)
			}
			run.active = append(run.active, j)
		}
		p := newProblem(run, nodes)
		x := slices.Clone(p.base)
		for range 100 {
			p.mutate(x, r)
			f := p.settle(x, r)
			if !(f[0] < 0 && f[1] <= 0) {
				t.Fatalf("fitness %v", f)
			}
			used, gangs := make([]int, nodes), make([]int, nodes)
			for i := range p.jobs {
				width, on := 0, 0
				for n := range nodes {
					g := at(p.row(x, i), n)
					used[n] += g
					width += g
					if g > 0 {
						on++
					}
				}
				if width > p.limits[i] || on > mostNodes {
					t.Fatalf("job %d has %d GPUs on %d nodes, want at most %d", i, width, on, p.limits[i])
				}
				for n := range nodes {
					if on > 1 && at(p.row(x, i), n) > 0 {
						gangs[n]++
					}
				}
			}
			if slices.Max(used) > p.per || !p.meet && slices.Max(gangs) > 1 {
				t.Fatalf("GPUs %v of %d each, gangs %v", used, p.per, gangs)
			}
			if again := slices.Clone(x); p.settle(again, r) != f || !slices.Equal(again, x) {
				t.Fatal("settling twice changes a state")
			}
		}
	}
}

// Ensure that the mesh gives points back, is exact for linear times, and knows nothing outside.
func TestMesh(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	plane := func(n, g, b int) float64 { return 1 + 0.5*float64(n) + 0.25*float64(g) + 0.125*float64(b) }
	var points []Point
	for _, n := range []int{1, 2, 4, 8} {
		for g := n; g <= 4*n; g += max(1, n/2) {
			for _, b := range []int{4, 8, 16, 40} {
				points = append(points, Point{n, g, b, plane(n, g, b), r.Float64()})
			}
		}
	}
	m := NewMesh(points)
	for _, p := range points {
		if step, sync, ok := m.At(p.Nodes, p.GPUs, p.PerGPU); !ok || math.Abs(step-p.Step) > 1e-9 ||
			math.Abs(sync-p.Sync) > 1e-9 {
			t.Fatalf("%+v: %v %v %v", p, step, sync, ok)
		}
	}
	for range 500 {
		n := 1 + r.IntN(10)
		capped := min(n, 8)
		g, b := capped+r.IntN(3*capped+1), 4+r.IntN(37)
		if step, _, ok := m.At(n, g, b); !ok || math.Abs(step-plane(capped, g, b)) > 1e-6 {
			t.Errorf("%d nodes, %d GPUs, %d samples: %v %v, want %v", n, g, b, step, ok, plane(capped, g, b))
		}
	}
	for _, q := range [][3]int{{1, 5, 8}, {2, 4, 3}, {2, 4, 41}, {4, 20, 8}} {
		if _, _, ok := m.At(q[0], q[1], q[2]); ok {
			t.Errorf("%v is known", q)
		}
	}
}
