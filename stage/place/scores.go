package place

import (
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// Scores is what a placement knows of how GPUs differ: for each class of jobs, which bin each GPU is in. Only the order
// and the ratios of binned scores matter. GPUs without a bin are never chosen.
type Scores struct {
	bins []variability.Bins // by class, from the most sensitive on
	of   func(*sched.JobSpec) int
	sets [][]sched.Bitset // by class and bin: its GPUs
}

// NewScores returns the knowledge of bins, where Bin[g] is of GPU g; of tells the class of a job, 0..len(bins)-1.
func NewScores(bins []variability.Bins, of func(*sched.JobSpec) int) *Scores {
	s := &Scores{bins: bins, of: of}
	for c := range bins {
		sets := make([]sched.Bitset, len(bins[c].SF))
		for b := range sets {
			sets[b] = sched.NewBitset(len(bins[c].Bin))
		}
		for g, b := range bins[c].Bin {
			sets[b].Set(g)
		}
		s.sets = append(s.sets, sets)
	}
	return s
}

// Class returns the class of job j.
func (s *Scores) Class(v *sched.View, j sched.JobID) int { return s.of(v.Jobs[j].Spec) }

// Slowest returns the largest binned score of gpus for class c: what a synchronous gang runs at.
func (s *Scores) Slowest(c int, gpus []sched.GPUID) float64 {
	worst := 0.0
	for _, g := range gpus {
		worst = max(worst, s.bins[c].Of(int(g)))
	}
	return worst
}

// free appends to dst the free GPUs of type t in bin b of class c, in order of number.
func (s *Scores) free(l *sched.Ledger, c, b int, t sched.TypeID, dst []sched.GPUID) []sched.GPUID {
	for g := l.NextFree(s.sets[c][b], 0); g != sched.None; g = l.NextFree(s.sets[c][b], g+1) {
		if l.Types() == 1 || l.TypeOf(g) == t {
			dst = append(dst, g)
		}
	}
	return dst
}
