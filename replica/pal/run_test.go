package pal

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// choice is a random moment: a cluster, its free GPUs and a job to place.
type choice struct {
	Params
	class, n int
	free     []int
}

func randomChoice(rnd *rand.Rand) choice {
	per := 1 + rnd.IntN(8)
	gpus := per * (1 + rnd.IntN(8))
	c := choice{Params: Params{Round: 300, Locality: []float64{1, 1.125, 1.7, 2.5}[rnd.IntN(4)], GPUsPerNode: per},
		class: rnd.IntN(Classes)}
	c.PM, c.SF = randomScores(rnd, gpus)
	busy := rnd.Float64()
	for g := range gpus {
		if len(c.free) == 0 && g == gpus-1 || rnd.Float64() >= busy {
			c.free = append(c.free, g)
		}
	}
	c.n = 1 + rnd.IntN(min(len(c.free), 2*per))
	return c
}

// pick returns the GPUs that policy chooses.
func (c choice) pick(policy Policy) (gpus []int) {
	c.Policy = policy
	r := newRun(nil, c.Params)
	clear(r.free)
	for _, g := range c.free {
		r.free[g/r.per] |= 1 << (g % r.per)
	}
	r.idle = len(c.free)
	before := slices.Clone(r.free)
	r.choose(&job{Job: Job{GPUs: c.n}, model: &Model{Class: c.class}})
	for node, set := range r.pick {
		if set&^before[node] != 0 || r.free[node] != before[node]&^set {
			panic("GPUs chosen are not free, or stay free")
		}
		for ; set != 0; set &= set - 1 {
			gpus = append(gpus, node*r.per+bits.TrailingZeros64(set))
		}
	}
	return gpus
}

// slowest is the largest binned score of gpus.
func (c choice) slowest(gpus []int) (s float64) {
	for _, g := range gpus {
		s = max(s, c.SF[c.class][g])
	}
	return s
}

func (c choice) oneNode(gpus []int) bool {
	return gpus[0]/c.GPUsPerNode == gpus[len(gpus)-1]/c.GPUsPerNode
}

// product is locality penalty times slowest score.
func (c choice) product(gpus []int) float64 {
	if c.oneNode(gpus) {
		return c.slowest(gpus)
	}
	return c.Locality * c.slowest(gpus)
}

// Ensure that the fast searches choose the GPUs that sorting, and trying all combinations, choose.
func TestChoiceTwins(t *testing.T) {
	for seed := range uint64(30_000) {
		c := randomChoice(rand.New(rand.NewPCG(seed, 2)))
		sf := c.SF[c.class]
		for policy, want := range map[Policy][]int{
			PAL:          naivePAL(sf, c.GPUsPerNode, c.Locality, c.n, c.free),
			PMFirst:      naivePMFirst(sf, c.GPUsPerNode, c.n, c.free),
			PackedSticky: naivePacked(c.GPUsPerNode, c.n, c.free),
		} {
			slices.Sort(want)
			if got := c.pick(policy); !slices.Equal(got, want) {
				t.Fatalf("seed %d, %v: %d GPUs of %v: got %v, want %v", seed, policy, c.n, c.free, got, want)
			}
		}
	}
}

// Ensure that, from the same free GPUs and up to a node's size, PAL is never worse than PM-First in locality times
// score, and never chooses slower GPUs than PM-First where locality is free.
func TestPALAgainstPMFirst(t *testing.T) {
	for seed := range uint64(10_000) {
		c := randomChoice(rand.New(rand.NewPCG(seed, 3)))
		pal, first := c.pick(PAL), c.pick(PMFirst)
		if c.n > 1 && c.n <= c.GPUsPerNode && c.product(pal) > c.product(first) {
			t.Errorf("seed %d: PAL %v: %v, PM-First %v: %v", seed, pal, c.product(pal), first, c.product(first))
		}
		if c.Locality == 1 && c.slowest(pal) != c.slowest(first) {
			t.Errorf("seed %d: L = 1: PAL %v: %v, PM-First %v: %v", seed, pal, c.slowest(pal), first, c.slowest(first))
		}
	}
}

// Ensure that with equal scores PAL uses one node, the emptiest, whenever one has room.
func TestEqualScores(t *testing.T) {
	for seed := range uint64(10_000) {
		c := randomChoice(rand.New(rand.NewPCG(seed, 4)))
		for g := range c.SF[c.class] {
			c.SF[c.class][g] = 1.5
		}
		free := make([]int, len(c.SF[0])/c.GPUsPerNode)
		for _, g := range c.free {
			free[g/c.GPUsPerNode]++
		}
		most := slices.Max(free)
		if c.n == 1 || c.n > most {
			continue
		}
		if got := c.pick(PAL); !c.oneNode(got) || got[0]/c.GPUsPerNode != slices.Index(free, most) {
			t.Errorf("seed %d: PAL takes %v of %v, want node %d", seed, got, c.free, slices.Index(free, most))
		}
	}
}

// Ensure that a factor on all scores of a class changes no choice. A power of two leaves ties as they are.
func TestScaledScores(t *testing.T) {
	for seed := range uint64(5000) {
		c := randomChoice(rand.New(rand.NewPCG(seed, 5)))
		pal, first := c.pick(PAL), c.pick(PMFirst)
		for g := range c.SF[c.class] {
			c.SF[c.class][g] *= 4
		}
		if got := c.pick(PAL); !slices.Equal(got, pal) {
			t.Errorf("seed %d: PAL: %v, scaled %v", seed, pal, got)
		}
		if got := c.pick(PMFirst); !slices.Equal(got, first) {
			t.Errorf("seed %d: PM-First: %v, scaled %v", seed, first, got)
		}
	}
}

// Ensure that renumbering GPUs inside their nodes, with their scores, renumbers the choice, when no two are equal.
func TestRelabelled(t *testing.T) {
	for seed := range uint64(5000) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		c := randomChoice(rnd)
		for g := range c.SF[c.class] {
			c.SF[c.class][g] = 1 + rnd.Float64()
		}
		d, to := c, make([]int, len(c.SF[0]))
		d.free = nil
		d.SF[c.class] = slices.Clone(c.SF[c.class])
		for g := range to {
			to[g] = g
		}
		for first := 0; first < len(to); first += c.GPUsPerNode {
			rnd.Shuffle(c.GPUsPerNode, func(i, k int) { to[first+i], to[first+k] = to[first+k], to[first+i] })
		}
		for g := range to {
			d.SF[c.class][to[g]] = c.SF[c.class][g]
		}
		for _, g := range c.free {
			d.free = append(d.free, to[g])
		}
		for _, policy := range []Policy{PAL, PMFirst} {
			var want []int
			for _, g := range c.pick(policy) {
				want = append(want, to[g])
			}
			slices.Sort(want)
			if got := d.pick(policy); !slices.Equal(got, want) {
				t.Errorf("seed %d, %v: got %v, want %v", seed, policy, got, want)
			}
		}
	}
}

// Ensure that on random histories no GPU has two owners, gangs are whole, time and service move forward, and, without
// stickiness, exactly the first jobs of the queue run, whatever their classes.
func TestInvariants(t *testing.T) {
	for seed := range uint64(1500) {
		jobs, p := randomCase(seed)
		r := newRun(jobs, p)
		last := int64(-1)
		for r.step() {
			if r.now <= last {
				t.Fatalf("seed %d: boundary %d after %d", seed, r.now, last)
			}
			last = r.now
			checkOwners(t, r)
			if !p.Policy.sticky() {
				checkHead(t, r)
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

func checkOwners(t *testing.T, r *run) {
	t.Helper()
	free, idle := slices.Clone(r.whole), r.gpus()
	running := 0
	for _, j := range r.queue {
		if !j.running {
			continue
		}
		running++
		n := 0
		for node, set := range j.held {
			if free[node]&set != set {
				t.Errorf("boundary %d: job %s: GPUs %b of node %d, left are %b", r.now, j.Job.ID, set, node, free[node])
			}
			free[node] &^= set
			n += bits.OnesCount64(set)
		}
		idle -= n
		if n != j.GPUs || !slices.Contains(r.running, j) || j.done >= j.Iterations {
			t.Errorf("boundary %d: job %s: %d GPUs of %d, %v of %v done", r.now, j.Job.ID, n, j.GPUs, j.done,
				j.Iterations)
		}
	}
	if running != len(r.running) || !slices.Equal(free, r.free) || idle != r.idle {
		t.Errorf("boundary %d: %d jobs run, listed %d; %d GPUs idle, counted %d", r.now, running, len(r.running), idle,
			r.idle)
	}
}

func checkHead(t *testing.T, r *run) {
	t.Helper()
	left := r.gpus()
	for i, j := range r.queue {
		if left -= j.GPUs; j.running != (left >= 0) {
			t.Errorf("boundary %d: job %d of the queue runs: %v, GPUs left %d", r.now, i, j.running, left)
		}
	}
}

// Ensure that many additions at once give what one after the other gives, roundings and ties included.
func TestAddUp(t *testing.T) {
	ties := 0
	for seed := range uint64(100_000) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		x := math.Ldexp(1+rnd.Float64(), rnd.IntN(12)-6)
		s := 0.0
		switch rnd.IntN(3) {
		case 0: // x is an odd multiple of half the last bit of s
			s = math.Ldexp(1, 52) + float64(rnd.IntN(1000)) - 300*float64(rnd.IntN(2))
			x = float64(rnd.IntN(9)) + 0.5
			ties++
		case 1:
			s = rnd.Float64() * math.Ldexp(x, rnd.IntN(70))
		}
		goal := s + x*rnd.Float64()*3000
		if rnd.IntN(3) == 0 {
			goal = s + math.Floor(rnd.Float64()*100)*x
		}
		if goal <= s {
			continue
		}
		limit := 1 + rnd.Int64N(4000)
		sum, n := s, int64(0)
		for n < limit && sum < goal {
			sum += x
			n++
		}
		if gotSum, got := addUp(s, x, goal, limit); gotSum != sum || got != n {
			t.Fatalf("seed %d: %v + n × %v up to %v, %d times: got %v after %d, want %v after %d", seed, s, x, goal,
				limit, gotSum, got, sum, n)
		}
	}
	if ties == 0 {
		t.Error("no ties tried")
	}
}

// Ensure that Run leaves its arguments alone and does the same twice.
func TestSameTwice(t *testing.T) {
	for seed := range uint64(300) {
		jobs, p := randomCase(seed)
		sameJobs, same := randomCase(seed)
		a, b := Run(jobs, p), Run(jobs, p)
		if diff := difference(a, b); diff != "" {
			t.Errorf("seed %d: %s", seed, diff)
		}
		if !slices.Equal(jobs, sameJobs) || !reflect.DeepEqual(p, same) {
			t.Fatalf("seed %d: arguments changed", seed)
		}
	}
}

// Ensure that a run which cannot end is given up: repeated jobs starve a tracked one under LAS.
func TestGivenUp(t *testing.T) {
	p := smallest()
	p.Order, p.Wrap, p.MaxRounds = LAS, true, 50
	long := Job{ID: "long", GPUs: 1, Iterations: 1e9, Model: "BERT"}
	late := Job{ID: "late", Submit: 300 * 51, GPUs: 1, Iterations: 1, Model: "BERT"}
	got := Run([]Job{long, late}, p)
	want := []Outcome{{ID: "long", Start: 0, Finish: -1, Run: 15000}, {ID: "late", Start: -1, Finish: -1}}
	if !slices.Equal(got.Jobs, want) || got.Rounds != 50 || got.BusyShare != 1 || got.Admitted != 1 {
		t.Errorf("got %+v", got)
	}
	if got := Run(nil, p); len(got.Jobs) != 0 || got.Rounds != 0 {
		t.Errorf("no jobs: got %+v", got)
	}
}

// smallest is a cluster of one GPU.
func smallest() Params {
	one := Scores{{1}, {1}, {1}, {1}}
	return Params{Round: 300, Locality: 1.7, GPUsPerNode: 1, PM: one, SF: one}
}

func TestValidate(t *testing.T) {
	fine := Job{ID: "x", GPUs: 1, Iterations: 1, Model: "BERT"}
	for _, c := range []struct {
		change func(*Params, *Job)
		want   string
	}{
		{func(*Params, *Job) {}, "<nil>"},
		{func(p *Params, _ *Job) { p.Policy = 6 }, "published: policy 6 is not known, want 0 to 5"},
		{func(p *Params, _ *Job) { p.Order = -1 }, "published: order -1 is not known, want 0 to 2"},
		{func(p *Params, _ *Job) { p.Round = 0 }, "published: round 0 s, want 1 to 1048576"},
		{func(p *Params, _ *Job) { p.Locality = math.NaN() }, "published: locality penalty NaN, want >= 1"},
		{func(p *Params, _ *Job) { p.GPUsPerNode = 65 }, "published: gpus per node 65, want 0 (default) to 64"},
		{func(p *Params, _ *Job) { p.GPUsPerNode = 0 }, "published: 1 GPUs, want a multiple of 4 up to 1048576"},
		{func(p *Params, _ *Job) { p.Tracked = 2 }, "published: tracked 2, want 0 (all) to 1"},
		{func(p *Params, _ *Job) { p.MaxRounds = -1 }, "published: max rounds -1, want 0 (default) to 1099511627776"},
		{func(p *Params, _ *Job) { p.Rows[1] = -1 }, "published: rows [0 -1 0 0], want 0 to 2147483647"},
		{func(p *Params, _ *Job) { p.PM[3] = nil }, "published: PM of class D: 0 scores, want 1"},
		{func(p *Params, _ *Job) { p.PM[1] = []float64{0} }, "published: PM of class B: GPU 0: score 0, want > 0"},
		{func(p *Params, _ *Job) { p.SF = Scores{} }, "published: SF of class A: 0 scores, want 1"},
		{func(p *Params, _ *Job) { p.SF, p.Policy = Scores{}, PackedSticky }, "<nil>"},
		{func(_ *Params, j *Job) { j.Submit = -1 },
			`published: job "x": submit -1 s, want 0 (that of the job before) to 1099511627776`},
		{func(_ *Params, j *Job) { j.GPUs = 2 },
			`published: job "x": gpus 2, want 1 to 1: a wider job blocks those behind it for ever`},
		{func(_ *Params, j *Job) { j.Iterations = 0 }, `published: job "x": iterations 0, want > 0`},
		{func(_ *Params, j *Job) { j.Model = "bert" }, `published: job "x": model "bert" is not known`},
	} {
		p, j := smallest(), fine
		c.change(&p, &j)
		if got := fmt.Sprint(p.Validate([]Job{j})); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	defer func() {
		if got := fmt.Sprint(recover()); got != "published: round 0 s, want 1 to 1048576" {
			t.Errorf("panic %q", got)
		}
	}()
	Run(nil, Params{Locality: 1})
}

func Example() {
	slow := []float64{1, 1, 1, 2, 1, 1, 1, 1} // GPU 3, in the first of two nodes
	even := []float64{1, 1, 1, 1, 1, 1, 1, 1}
	scores := Scores{slow, even, even, even}
	jobs := []Job{
		{ID: "memory-bound", GPUs: 4, Iterations: 10_000, Model: "PointNet"},
		{ID: "compute-bound", GPUs: 4, Iterations: 10_000, Model: "resnet50"},
	}
	res := Run(jobs, Params{Policy: PAL, Round: 300, Locality: 1.7, PM: scores, SF: scores})
	for _, o := range res.Jobs {
		fmt.Printf("%s ends %d\n", o.ID, o.Finish)
	}
	fmt.Printf("busy %.2f\n", res.BusyShare)
	// Output:
	// memory-bound ends 3000
	// compute-bound ends 1800
	// busy 0.80
}
