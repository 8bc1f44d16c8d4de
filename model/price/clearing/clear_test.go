package clearing

import (
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/model/price"
)

// step is a step of a hull.
type step struct {
	unit, from int
	worth      float64
}

// clearNaively does what Clear does by sorting all steps.
func clearNaively(jobs []Bidder, gpus int) (at []int, most float64, held int) {
	at = make([]int, len(jobs))
	for j := range jobs {
		at[j] = -1
		if k := jobs[j].Hull[0].Option; held+k <= gpus {
			at[j], held = 0, held+k
		}
	}
	if slices.Contains(at, -1) {
		return at, 0, held
	}
	var steps []step
	for j, job := range jobs {
		for i := range len(job.Hull) - 1 {
			steps = append(steps, step{j, i, job.Weight * price.Worth(job.Hull, i)})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int {
		switch {
		case a.worth > b.worth:
			return -1
		case a.worth < b.worth:
			return 1
		}
		return 0
	})
	for _, s := range steps {
		more := jobs[s.unit].Hull[s.from+1].Option - jobs[s.unit].Hull[s.from].Option
		if held+more > gpus {
			return at, s.worth, held
		}
		at[s.unit], held = s.from+1, held+more
	}
	return at, 0, held
}

// crowd returns jobs of ten kinds with hulls of their own; Option is the width.
func crowd(rng *rand.Rand, n int) []Bidder {
	var kinds [][]price.Point
	for range 10 {
		var points []price.Point
		speed := 1.0
		for k := 1; k <= 17; k++ {
			points = append(points, price.Point{Cost: float64(k) / speed, Delay: 1 / speed, Option: k})
			speed += 0.9*rng.Float64() + 0.1
		}
		kinds = append(kinds, price.Hull(points))
	}
	jobs := make([]Bidder, n)
	for j := range jobs {
		jobs[j] = Bidder{kinds[rng.Intn(10)], float64(1 + rng.Intn(3))}
	}
	return jobs
}

// Ensure that clearing gives what sorting all steps gives, and that the price says who has what.
func TestClearTwin(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	var c Clearing
	for range 500 {
		jobs := crowd(rng, rng.Intn(60))
		gpus := rng.Intn(400)
		out := c.Clear(jobs, float64(gpus))
		at, most, held := clearNaively(jobs, gpus)
		if !slices.Equal(out.At, at) || out.Price != most ||
			math.Abs(out.Held-float64(held)) > 1e-9*max(1, float64(held)) {
			t.Fatalf("%d jobs on %d GPUs: price %v, %v GPUs, %v\nwant %v, %v, %v", len(jobs), gpus, out.Price, out.Held,
				out.At, most, held, at)
		}
		for j := range jobs {
			if out.Short == 0 && out.At[j] < price.At(jobs[j].Hull, jobs[j].Weight, out.Price) {
				t.Fatalf("job %d has %d, less than at the price", j, out.At[j])
			}
		}
	}
}

// Ensure that the square roots of specs of BOA, section 4.2, share a cluster as one price says: 16 and 64 GPUs of 80.
func TestClearTwoPowerLaws(t *testing.T) {
	var jobs []Bidder
	for _, p := range []float64{0.5, 0.8} {
		var points []price.Point
		for k := 1; k <= 100; k++ {
			s := price.Power{Exponent: p}.Speed(float64(k))
			points = append(points, price.Point{Cost: float64(k) / s, Delay: 1 / s, Option: k})
		}
		jobs = append(jobs, Bidder{price.Hull(points), 1})
	}
	var c Clearing
	out := c.Clear(jobs, 80)
	if jobs[0].Hull[out.At[0]].Option != 16 || jobs[1].Hull[out.At[1]].Option != 64 ||
		math.Abs(1/out.Price-16.5) > 0.05*16.5 {
		t.Errorf("%v at %v GPUs per job", out.At, 1/out.Price)
	}
}

// Ensure that on a cluster too small for all the first ones run.
func TestClearShort(t *testing.T) {
	hull := []price.Point{{Cost: 1, Delay: 1, Option: 1}, {Cost: 1.5, Delay: 0.75, Option: 2}}
	var c Clearing
	if out := c.Clear([]Bidder{{hull, 1}, {hull, 1}, {hull, 1}}, 2); !slices.Equal(out.At, []int{0, 0, -1}) ||
		out.Short != 1 || out.Held != 2 {
		t.Errorf("%+v", out)
	}
	if out := c.Clear(nil, 2); len(out.At) != 0 || out.Held != 0 || out.Price != 0 {
		t.Errorf("%+v", out)
	}
}

// BenchmarkClear clears 10,000 jobs on 40,000 GPUs.
func BenchmarkClear(b *testing.B) {
	jobs := crowd(rand.New(rand.NewSource(1)), 10000)
	var c Clearing
	b.ReportAllocs()
	for b.Loop() {
		c.Clear(jobs, 40000)
	}
}

// Ensure that clearing takes no memory once it has some.
func TestClearAllocates(t *testing.T) {
	jobs := crowd(rand.New(rand.NewSource(1)), 100)
	var c Clearing
	c.Clear(jobs, 400)
	if n := testing.AllocsPerRun(10, func() { c.Clear(jobs, 400) }); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
