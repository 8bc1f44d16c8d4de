package place

import (
	"slices"

	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// Scores is what a placement knows of how GPUs differ: for each class of jobs, which bin each GPU is in. Only the order
// and the ratios of binned scores matter. GPUs without a bin are never chosen. It keeps indexes of the two ledgers
// asked about last and is not safe for concurrent use.
type Scores struct {
	known []variability.Bins // by class, from the most sensitive on, as given
	bins  []variability.Bins // the same as revised
	of    ClassOf
	books [2]indexed // the one asked about last comes first
}

// ClassOf returns the class of job j, numbered from the most sensitive on.
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

// NewScores returns the knowledge of bins, where Bin[g] is of GPU g; of returns the class of a job, 0..len(bins)-1.
func NewScores(bins []variability.Bins, of ClassOf) *Scores {
	return &Scores{known: bins, bins: bins, of: of}
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

// Revise has GPU g taken to be factor(g) times as slow as its bin says, > 0 and finite, for all classes. GPUs with
// factor 1 keep their bins, so that nothing changes between them; the others get bins of their own. Factors replace
// those of the last time. Where there would be more than variability.MaxBins bins, the slowest are one.
func (s *Scores) Revise(factor func(g sched.GPUID) float64) {
	s.bins = make([]variability.Bins, len(s.known))
	for c := range s.known {
		s.bins[c] = revised(&s.known[c], factor)
	}
	s.books = [2]indexed{}
}

// revised returns bins with factors.
func revised(known *variability.Bins, factor func(g sched.GPUID) float64) variability.Bins {
	now := make([]float64, len(known.Bin))
	sf := slices.Clone(known.SF)
	for g := range now {
		now[g] = known.Of(g)
		if f := factor(sched.GPUID(g)); f != 1 {
			now[g] *= f
			sf = append(sf, now[g])
		}
	}
	slices.Sort(sf)
	sf = slices.Compact(sf)
	sf = sf[:min(len(sf), variability.MaxBins)]
	bin := make([]int, len(now))
	for g, x := range now {
		b, _ := slices.BinarySearch(sf, x)
		bin[g] = min(b, len(sf)-1)
	}
	return variability.Bins{Bin: bin, SF: sf}
}
