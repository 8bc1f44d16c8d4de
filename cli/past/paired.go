package past

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trainyard/trainyard/metrics"
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
	Diff, Low, High float64
	Blocks          int
}

// jcts returns the JCT of the jobs that are counted, in order of arrival; -1 of one that did not end.
func (h *History) jcts(jobs []metrics.Job) (list []time.Duration) {
	for i := range jobs {
		switch {
		case !h.ended[i]:
		case jobs[i].Finish == sched.None:
			list = append(list, -1)
		default:
			list = append(list, jobs[i].JCT())
		}
	}
	return list
}

// pair compares each simulated row with that of the system that decided, by what the jobs of each took.
func pair(rows []Row, took [][]time.Duration) {
	base := slices.IndexFunc(rows, func(r Row) bool { return r.Error != nil })
	if base < 0 {
		return
	}
	for i := range rows {
		if r := &rows[i]; !r.Recorded && r.Err == nil && i != base {
			r.Paired = paired(took[i], took[base])
		}
	}
}

// block is what the jobs of one took in all, in seconds.
type block struct{ got, base float64 }

// paired returns how far got is from base; nil where there are too few jobs for an interval. Jobs that did not end
// under both count for neither.
func paired(got, base []time.Duration) *Paired {
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
		return relative(sum.got, sum.base)
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
