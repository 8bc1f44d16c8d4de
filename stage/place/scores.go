package place

import (
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// Scores is what a placement knows of how GPUs differ: for each class of jobs, which bin each GPU is in. Only the order
// and the ratios of binned scores matter. GPUs without a bin are never chosen. It keeps indexes of the two ledgers asked
// about last and is not safe for concurrent use.
type Scores struct {
	bins  []variability.Bins // by class, from the most sensitive on
	of    ClassOf
	books [2]indexed // the one asked about last comes first
}

// ClassOf tells the class of job j, numbered from the most sensitive on.
type ClassOf func(v *sched.View, j sched.JobID) int

// BySpec is ClassOf by what a job says of itself alone. It is remembered, for jobs are asked about again and again.
func BySpec(of func(*sched.JobSpec) int) ClassOf {
	type known struct {
		spec  *sched.JobSpec
		class int
	}
	var jobs []known
	return func(v *sched.View, j sched.JobID) int {
		for int(j) >= len(jobs) {
			jobs = append(jobs, known{})
		}
		k := &jobs[j]
		if spec := v.Jobs[j].Spec; k.spec != spec {
			*k = known{spec, of(spec)}
		}
		return k.class
	}
}

// indexed is a ledger and its indexes, by class; nil = not asked for yet.
type indexed struct {
	ledger  *sched.Ledger
	indexes []*index
}

// NewScores returns the knowledge of bins, where Bin[g] is of GPU g; of tells the class of a job, 0..len(bins)-1.
func NewScores(bins []variability.Bins, of ClassOf) *Scores {
	return &Scores{bins: bins, of: of}
}

// Class returns the class of job j.
func (s *Scores) Class(v *sched.View, j sched.JobID) int { return s.of(v, j) }

// Slowest returns the largest binned score of gpus for class c: what a synchronous gang runs at.
func (s *Scores) Slowest(c int, gpus []sched.GPUID) float64 {
	worst := 0.0
	for _, g := range gpus {
		worst = max(worst, s.bins[c].Of(int(g)))
	}
	return worst
}

// index returns the index of class c, which is up to date until l changes.
func (s *Scores) index(v *sched.View, l *sched.Ledger, c int) *index {
	if s.books[0].ledger != l {
		s.books[0], s.books[1] = s.books[1], s.books[0]
	}
	if s.books[0].ledger != l {
		s.books[0] = indexed{l, make([]*index, len(s.bins))}
	}
	x := s.books[0].indexes[c]
	if x == nil {
		x = &index{bin: s.bins[c].Bin, bins: len(s.bins[c].SF)}
		s.books[0].indexes[c] = x
	}
	x.update(v, l)
	return x
}
