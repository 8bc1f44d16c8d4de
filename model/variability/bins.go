package variability

import (
	"math"
	"slices"
)

// MaxK is the largest number of clusters that is tried, outliers aside.
//
// Source: released code, cluster_state.py.
const MaxK = 10

// PublishedK is the number of clusters that the released code always ends up with: it leaves the loop over 2..10 in the
// first turn. Runs that are compared with its results need it.
const PublishedK = 2

// outlierSD is how many standard deviations above the mean an outlier lies.
//
// Source: released code, cluster_state.py.
const outlierSD = 3

// MaxBins bounds the bins of a class. It cuts short what the rule of one cluster for each outlier makes of a large
// cluster, where no one needs to distinguish hundreds of slow GPUs, and bounds the time and memory that it takes.
const MaxBins = 64

// Rule says how scores are put into bins. The zero value is the rule as it was meant.
type Rule struct {
	// clusters besides outliers, at most MaxBins; 0 = the number in 2..MaxK with the best silhouette, PublishedK = as
	// released
	K int
}

// Bins is how the GPUs of one class fall into groups of about the same speed.
type Bins struct {
	Bin        []int     // Bin[g] is the bin of GPU g; bins are numbered from the fastest, 0
	SF         []float64 // SF[b] is the binned score of bin b: its centre over the median of all centres; ascending
	Centres    []float64 // Centres[b] is the mean score of bin b
	Outliers   []int     // GPUs far slower than the rest, by rising number; they may share a bin
	K          int       // clusters besides outliers
	Silhouette float64   // mean silhouette of these, for which K was chosen; 0 if there was no choice
}

// Of returns the binned score of GPU g, 1 of one that has none. It is for decisions alone: what a GPU takes from a job
// is its PM score.
func (b *Bins) Of(g int) float64 {
	if g >= len(b.Bin) {
		return 1
	}
	return b.SF[b.Bin[g]]
}

// Bins puts the scores x, x[g] of GPU g, all in MinScore..MaxScore and at least one, into bins:
//
//	outliers  x[g] > mean(x) + 3 sd(x), looked for once; sd of a sample, n-1
//	K         clusters of the others: given, or that of the best silhouette, ties to the fewest
//	clusters  K + |outliers| of all x together, by exact k-means; at most MaxBins and as many as distinct scores
//	SF        centre / median of the centres, each centre counting once however many GPUs it stands for
//
// Multiplying all x by a constant changes no bin and no SF, rounding aside.
//
// Deviation: the released code clusters by k-means++ with restarts, which finds the same clusters in its own data; ours
// are optimal always. Where fewer than three others are left or all are alike there is nothing to choose, and K is 1 or
// what was given.
//
// Source: released code, cluster_state.py.
func (r Rule) Bins(x []float64) Bins {
	var b Bins
	b.Outliers = outliers(x)
	var rest []float64
	for g, v := range x {
		if _, out := slices.BinarySearch(b.Outliers, g); !out {
			rest = append(rest, v)
		}
	}
	b.K, b.Silhouette = r.clusters(pointsOf(rest), len(rest))
	p := pointsOf(x)
	k := min(b.K+len(b.Outliers), len(p.x), MaxBins)
	starts := p.clusters(k)[k-1]
	for c, from := range starts {
		to := len(p.x)
		if c+1 < len(starts) {
			to = starts[c+1]
		}
		b.Centres = append(b.Centres, p.centre(from, to))
	}
	mid := median(b.Centres)
	for _, c := range b.Centres {
		b.SF = append(b.SF, c/mid)
	}
	b.Bin = make([]int, len(x))
	for g, v := range x {
		i, _ := slices.BinarySearch(p.x, v)
		c, exact := slices.BinarySearch(starts, i)
		if !exact {
			c--
		}
		b.Bin[g] = c
	}
	return b
}

// All returns the bins of each class of s.
func (r Rule) All(s *Scores) []Bins {
	all := make([]Bins, len(s.Classes))
	for c := range all {
		all[c] = r.Bins(s.PM[c])
	}
	return all
}

// clusters returns into how many clusters the n numbers of p fall, and their silhouette if it was asked.
func (r Rule) clusters(p *points, n int) (k int, silhouette float64) {
	if r.K > 0 {
		return min(r.K, len(p.x)), 0
	}
	most := min(MaxK, n-1, len(p.x))
	if most < 2 {
		return 1, 0
	}
	k = 1
	for i, starts := range p.clusters(most)[1:] {
		// Rounding must not decide: a change of unit would then change K.
		if s := p.silhouette(starts); k == 1 || s > silhouette+1e-12 {
			k, silhouette = i+2, s
		}
	}
	return k, silhouette
}

// outliers returns the numbers of x that lie far above the others, by rising index.
func outliers(x []float64) []int {
	if len(x) < 2 {
		return nil
	}
	m, squares := mean(x), 0.0
	for _, v := range x {
		squares += float64((v - m) * (v - m))
	}
	limit := m + float64(outlierSD*math.Sqrt(squares/float64(len(x)-1)))
	var out []int
	for g, v := range x {
		if v > limit {
			out = append(out, g)
		}
	}
	return out
}

// median returns the middle of values, or the mean of the two middle ones; at least one. values stay as they are.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}
