package variability

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Ensure that the clusters are those that trying every place of every cut finds, and never cost more.
func TestClustersAgreeWithTwins(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for range 400 {
		x := draw(r, 1+r.IntN(40))
		p := pointsOf(x)
		most := min(6, len(p.x))
		for i, starts := range p.clusters(most) {
			k := i + 1
			if len(starts) != k || starts[0] != 0 || !slices.IsSorted(starts) {
				t.Fatalf("k = %d: starts %v", k, starts)
			}
			got, want := cost(p, starts), cost(p, slowClusters(p, k))
			if got > want+1e-12*p.cost(0, len(p.x)) {
				t.Fatalf("k = %d of %v: starts %v cost %v, want %v", k, x, starts, got, want)
			}
			if len(p.x) <= 12 {
				if want := bruteCost(p, 0, k); math.Abs(got-want) > 1e-12 {
					t.Fatalf("k = %d of %v: cost %v, want %v", k, x, got, want)
				}
			}
		}
	}
}

// Ensure that the silhouette is that of its definition.
func TestSilhouetteAgreesWithTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for range 200 {
		x := draw(r, 3+r.IntN(40))
		p := pointsOf(x)
		for _, starts := range p.clusters(min(6, len(p.x)))[min(1, len(p.x)-1):] {
			if len(starts) < 2 {
				continue
			}
			if got, want := p.silhouette(starts), slowSilhouette(p, starts, x); math.Abs(got-want) > 1e-9 {
				t.Fatalf("silhouette of %v at %v: %v, want %v", x, starts, got, want)
			}
		}
	}
}

// Ensure that the silhouette is as worked out by hand: 1 and 2 are 1 apart, and 8.5 and 7.5 from the others on average.
func TestSilhouetteByHand(t *testing.T) {
	p := pointsOf([]float64{1, 2, 9, 10})
	want := ((1 - 1/8.5) + (1 - 1/7.5)) / 2
	if got := p.silhouette([]int{0, 2}); math.Abs(got-want) > 1e-15 {
		t.Errorf("silhouette %v, want %v", got, want)
	}
	want = ((1 - 1/8.) + (1 - 1/7.)) / 4
	if got := p.silhouette([]int{0, 2, 3}); math.Abs(got-want) > 1e-15 {
		t.Errorf("silhouette %v with 9 and 10 alone, want %v", got, want)
	}
}

func cost(p *points, starts []int) float64 {
	sum := 0.0
	for c, from := range starts {
		to := len(p.x)
		if c+1 < len(starts) {
			to = starts[c+1]
		}
		sum += p.cost(from, to)
	}
	return sum
}

// slowClusters is clusters without the halving.
func slowClusters(p *points, k int) []int {
	n := len(p.x)
	best := make([][]float64, k+1)
	from := make([][]int, k+1)
	for c := range best {
		best[c], from[c] = make([]float64, n+1), make([]int, n+1)
		for j := range best[c] {
			best[c][j] = math.Inf(1)
		}
	}
	best[0][0] = 0
	for c := 1; c <= k; c++ {
		for j := c; j <= n; j++ {
			for i := c - 1; i < j; i++ {
				if v := best[c-1][i] + p.cost(i, j); v < best[c][j] {
					best[c][j], from[c][j] = v, i
				}
			}
		}
	}
	starts := make([]int, k)
	for c, end := k, n; c > 0; c-- {
		end = from[c][end]
		starts[c-1] = end
	}
	return starts
}

// bruteCost is the least cost of the points from on in k clusters, by trying all, each cost from its definition.
func bruteCost(p *points, from, k int) float64 {
	if k == 1 {
		return bruteSquares(p, from, len(p.x))
	}
	best := math.Inf(1)
	for to := from + 1; to <= len(p.x)-k+1; to++ {
		best = min(best, bruteSquares(p, from, to)+bruteCost(p, to, k-1))
	}
	return best
}

func bruteSquares(p *points, from, to int) float64 {
	sum, n := 0.0, 0.0
	for i := from; i < to; i++ {
		w := p.count[i+1] - p.count[i]
		sum, n = sum+w*p.x[i], n+w
	}
	squares := 0.0
	for i := from; i < to; i++ {
		d := p.x[i] - sum/n
		squares += (p.count[i+1] - p.count[i]) * d * d
	}
	return squares
}

func slowSilhouette(p *points, starts []int, x []float64) float64 {
	cluster := func(v float64) int {
		at, _ := slices.BinarySearch(p.x, v)
		c := 0
		for c+1 < len(starts) && starts[c+1] <= at {
			c++
		}
		return c
	}
	total := 0.0
	for i, v := range x {
		sum, n := make([]float64, len(starts)), make([]float64, len(starts))
		for j, w := range x {
			if i != j {
				sum[cluster(w)] += math.Abs(v - w)
				n[cluster(w)]++
			}
		}
		own, b := cluster(v), math.Inf(1)
		for c := range starts {
			if c != own {
				b = min(b, sum[c]/n[c])
			}
		}
		if n[own] > 0 {
			a := sum[own] / n[own]
			total += (b - a) / max(a, b)
		}
	}
	return total / float64(len(x))
}
