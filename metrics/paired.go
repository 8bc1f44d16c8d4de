package metrics

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

const (
	// blockJobs is how many jobs that arrived one after the other make a block at least, fewestBlocks and mostBlocks
	// how many blocks there are. Ours: jobs that come together wait for one another, so single jobs are no sample.
	blockJobs    = 10
	fewestBlocks = 20
	mostBlocks   = 100
	// draws is how often blocks are drawn: enough for the second digit of a 95 % interval.
	draws = 10_000
)

// Paired is how far the mean JCT under one system is from that under another, both simulated on the same jobs, relative
// to the other: 0.1 = a tenth more. Low and High are its 95 % interval by a bootstrap over blocks of arrivals.
type Paired struct {
	Diff   float64 `json:"mean_jct"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Blocks int     `json:"blocks"` // of jobs that arrived one after the other
}

// PairJobs compares what the same jobs, in order of arrival, took under one system and another. nil where too few
// finished under both for an interval, or where their numbers differ.
func PairJobs(got, base []Job) *Paired {
	if len(got) != len(base) {
		return nil
	}
	took := func(jobs []Job) []time.Duration {
		list := make([]time.Duration, len(jobs))
		for i := range jobs {
			if list[i] = -1; jobs[i].Outcome == sched.Finished {
				list[i] = jobs[i].JCT()
			}
		}
		return list
	}
	return Pair(took(got), took(base))
}

// block is what the jobs of one took in all, in seconds.
type block struct{ got, base float64 }

// Pair returns how far the times got of jobs in order of arrival are from base, those of the same jobs; nil where there
// are too few for an interval. A time below 0 is that of a job that did not end: jobs that did not end under both count
// for neither.
func Pair(got, base []time.Duration) *Paired {
	var both []block
	for i := range min(len(got), len(base)) {
		if got[i] >= 0 && base[i] >= 0 {
			both = append(both, block{got[i].Seconds(), base[i].Seconds()})
		}
	}
	k := min(len(both)/blockJobs, mostBlocks)
	if k < fewestBlocks {
		return nil
	}
	blocks := make([]block, k)
	for i, x := range both {
		b := &blocks[i*k/len(both)]
		b.got, b.base = b.got+x.got, b.base+x.base
	}
	diff := func(pick func(i int) *block) float64 {
		sum := block{}
		for i := range blocks {
			b := pick(i)
			sum.got, sum.base = sum.got+b.got, sum.base+b.base
		}
		return (sum.got - sum.base) / max(sum.base, time.Nanosecond.Seconds())
	}
	p := &Paired{Diff: diff(func(i int) *block { return &blocks[i] }), Blocks: k}
	r := rand.New(rand.NewPCG(1, uint64(k)))
	list := make([]float64, draws)
	for i := range list {
		list[i] = diff(func(int) *block { return &blocks[r.IntN(k)] })
	}
	slices.Sort(list)
	p.Low, p.High = list[draws*25/1000-1], list[draws*975/1000-1]
	return p
}
