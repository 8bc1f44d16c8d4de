package tiresias

import (
	"cmp"
	"math"
	"slices"
)

// rankTable is the Gittins index of the released simulator, tabulated just below each sample.
type rankTable struct {
	samples []int64 // GPU-seconds, ascending
	index   []float64
}

func newRankTable(samples []int64, delta int64) *rankTable {
	t := &rankTable{samples: slices.Sorted(slices.Values(samples))}
	sums := make([]int64, len(samples)+1) // sums[i]: of the first i samples
	for i, s := range t.samples {
		sums[i+1] = sums[i] + s
	}
	for _, s := range t.samples {
		t.index = append(t.index, indexAt(t.samples, sums, s-1, delta))
	}
	return t
}

// at returns the rank of a job with the given attained service in GPU-seconds, and the service up to which it is valid:
// the index just below the smallest larger sample and that sample, 0 from the largest sample on.
func (t *rankTable) at(service int64) (index float64, until int64) {
	if i := countUpTo(t.samples, service); i < len(t.index) {
		return t.index[i], t.samples[i]
	}
	return 0, never
}

// settleRank brings the rank of j up to now.
func (r *run) settleRank(j *job) {
	if s := j.service(r.now); s >= j.rankTo {
		j.rank, j.rankTo = r.ranks.at(s)
	}
}

// rerank sorts the running jobs of q by rank, then submission.
//
// The released simulator does so at each pass. While all jobs of a queue run, their order decides nothing, and is made
// up for later: only of jobs submitted together and now of one rank it matters how they were ordered before.
func (r *run) rerank(q *queue) {
	for _, j := range q.running {
		r.settleRank(j)
	}
	slices.SortStableFunc(q.running, func(a, b *job) int {
		switch {
		case a.outranks(b):
			return -1
		case b.outranks(a):
			return 1
		}
		return r.lastOrder(a, b, q.sortedAt)
	})
	q.sortedAt = r.now
}

// lastOrder compares the ranks of two running jobs at the last pass that distinguished them, among those since both run
// and after their queue was sorted; 0 if none did, and their places in the list say what was before.
func (r *run) lastOrder(a, b *job, sortedAt int64) int {
	if a.GPUs == b.GPUs && a.executedAt(r.now) == b.executedAt(r.now) {
		return 0
	}
	from := max(a.since, b.since)
	if from < sortedAt {
		from = sortedAt + 1
	}
	for i := len(r.passes) - 1; i >= 0 && r.passes[i] >= from; i-- {
		rankA, _ := r.ranks.at(a.service(r.passes[i]))
		rankB, _ := r.ranks.at(b.service(r.passes[i]))
		if rankA != rankB {
			return cmp.Compare(rankB, rankA)
		}
	}
	return 0
}

// indexAt is the released formula. p: chance to finish within delta. e: expected service in that time, in which the
// total size of a job stands where the remaining size belongs, divided in integers. The last sample never counts as
// finishing. sums as in newRankTable; all samples and delta > 0, which keeps e > 0.
func indexAt(samples, sums []int64, service, delta int64) float64 {
	n := len(samples)
	i := countUpTo(samples, service)
	k := n - 1
	if service+delta <= samples[n-1]-1 {
		k = countUpTo(samples, service+delta)
	}
	p := roundHalfAway(float64(k-i)/float64(n-i), 1e5)
	e := (sums[k] - sums[i] + delta*int64(n-k)) / int64(n-i)
	return roundHalfAway(p*1e6/float64(e), 1e4)
}

// countUpTo returns how many of the ascending samples are at most limit.
func countUpTo(samples []int64, limit int64) int {
	i, _ := slices.BinarySearch(samples, limit+1)
	return i
}

// roundHalfAway is Python 2's round for 0 <= x*scale < 2^52, to 1/scale: the exact binary value of x decides, and an
// exact half goes up. Python 3 rounds an exact half to even, which gives other schedules.
func roundHalfAway(x, scale float64) float64 {
	near := float64(x * scale)
	lost := math.FMA(x, scale, -near) // near + lost is x*scale exactly
	whole := math.Floor(near)
	if near-whole-0.5 >= -lost {
		whole++
	}
	return whole / scale
}
