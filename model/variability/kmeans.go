package variability

import (
	"slices"
)

// points is a set of numbers made ready for clustering: the distinct ones in ascending order, each with its count.
// Equal numbers so never part.
type points struct {
	x      []float64 // distinct, ascending
	count  []float64 // prefix sums of counts: count[i] numbers lie below x[i]
	sum    []float64 // prefix sums of numbers less origin
	square []float64 // prefix sums of their squares
	origin float64   // the mean: sums of small numbers lose fewer digits
}

func pointsOf(values []float64) *points {
	sorted := slices.Sorted(slices.Values(values))
	p := &points{count: []float64{0}, sum: []float64{0}, square: []float64{0}, origin: mean(sorted)}
	for i, v := range sorted {
		if i == 0 || v != sorted[i-1] {
			p.x = append(p.x, v)
			n := len(p.count) - 1
			p.count, p.sum, p.square = append(p.count, p.count[n]), append(p.sum, p.sum[n]),
				append(p.square, p.square[n])
		}
		n, d := len(p.x), v-p.origin
		p.count[n]++
		p.sum[n] += d
		p.square[n] += float64(d * d)
	}
	return p
}

// cost is the sum of squared distances of the points from..to-1 to their mean.
func (p *points) cost(from, to int) float64 {
	s := p.sum[to] - p.sum[from]
	mid := float64(s * s / (p.count[to] - p.count[from]))
	return max(0, p.square[to]-p.square[from]-mid)
}

// centre is the mean of the points from..to-1.
func (p *points) centre(from, to int) float64 {
	return p.origin + (p.sum[to]-p.sum[from])/(p.count[to]-p.count[from])
}

// clusters returns, for each k in 1..most, the starts of the k clusters of least total cost; the first is 0. Clusters
// in one dimension are intervals, so dynamic programming over the place of the last one finds the optimum. most is at
// most the number of distinct points.
//
// With n points it takes O(most n log n): where the last interval starts never falls as the point where it ends rises,
// so each row of the table is filled by halving. Of equally good starts the lowest is taken; costs that differ by no
// more than rounding does are equal, so that a change of unit moves nothing.
//
// Source: Wang and Song, "Ckmeans.1d.dp", The R Journal 3/2, 2011; the halving is that of Gronlund et al., "Fast exact
// k-means, k-medians and Bregman divergence clustering in 1D", arXiv 1701.07204.
func (p *points) clusters(most int) [][]int {
	n := len(p.x)
	f := filler{p: p, equal: 1e-12 * p.cost(0, n)}
	f.next = make([]float64, n+1)
	starts := make([][]int32, most)
	for j := 1; j <= n; j++ {
		f.next[j] = p.cost(0, j)
	}
	for k := 1; k < most; k++ {
		f.last, f.next = f.next, make([]float64, n+1)
		f.start = make([]int32, n+1)
		f.fill(k+1, n, k, n-1)
		starts[k] = f.start
	}
	all := make([][]int, most)
	for k := range all {
		cut := make([]int, k+1)
		for c, end := k, n; c > 0; c-- {
			cut[c] = int(starts[c][end])
			end = cut[c]
		}
		all[k] = cut
	}
	return all
}

// filler fills one row of the table: next[j] is the least cost of points 0..j-1 in one cluster more than last has.
type filler struct {
	p          *points
	equal      float64
	last, next []float64
	start      []int32 // start[j] is where the last cluster of next[j] starts
}

// fill finds next[from..to], whose starts are in low..high.
func (f *filler) fill(from, to, low, high int) {
	if from > to {
		return
	}
	j := (from + to) / 2
	at, best := -1, 0.0
	for i := low; i <= min(high, j-1); i++ {
		if c := f.last[i] + f.p.cost(i, j); at < 0 || c < best-f.equal {
			at, best = i, c
		}
	}
	f.next[j], f.start[j] = best, int32(at)
	f.fill(from, j-1, low, at)
	f.fill(j+1, to, at, high)
}

// silhouette is the mean silhouette of all numbers, duplicates included, under the clusters that start at starts, of
// which there are at least two. A number alone in its cluster counts as 0. Of the other clusters, one of the two
// neighbours is nearest, since clusters are intervals.
//
// Source: Rousseeuw, J. Comput. Appl. Math. 20, 1987; scikit-learn's silhouette_score agrees.
func (p *points) silhouette(starts []int) float64 {
	total := 0.0
	for c, from := range starts {
		to := len(p.x)
		if c+1 < len(starts) {
			to = starts[c+1]
		}
		size := p.count[to] - p.count[from]
		if size == 1 {
			continue
		}
		for i := from; i < to; i++ {
			own := (p.distance(i, from, i) + p.distance(i, i, to)) / (size - 1)
			other := -1.0
			if c > 0 {
				other = p.distance(i, starts[c-1], from) / (p.count[from] - p.count[starts[c-1]])
			}
			if c+1 < len(starts) {
				end := len(p.x)
				if c+2 < len(starts) {
					end = starts[c+2]
				}
				if d := p.distance(i, to, end) / (p.count[end] - p.count[to]); other < 0 || d < other {
					other = d
				}
			}
			total += float64((p.count[i+1] - p.count[i]) * ((other - own) / max(own, other)))
		}
	}
	return total / p.count[len(p.x)]
}

// distance is the sum of the distances of point i to all points from..to-1, which lie on one side of it.
func (p *points) distance(i, from, to int) float64 {
	d := p.sum[to] - p.sum[from] - float64((p.count[to]-p.count[from])*(p.x[i]-p.origin))
	return max(d, -d)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
