package place

import (
	"github.com/trainyard/trainyard/sched"
)

// Skew consolidates only the jobs whose model suffers from being spread: those with one dominating tensor. All others
// are Packed: one node if one has room, else any free GPUs, nodes with most free ones first. A skewed gang that cannot
// be consolidated waits, and preempts no one.
//
// Source: Gu et al., NSDI'19 (Tiresias), placement by model profile. The order in which machines are taken is not known
// to us; taking the fullest node that fits keeps whole nodes free for skewed gangs.
type Skew struct {
	// Of returns the skew of a model: its largest tensor's share of all its bytes, and whether it is known.
	Of func(model string) (float64, bool)
	// Limit is PACKLIMIT: a model above it is consolidated.
	Limit float64
}

var (
	_ sched.Placer    = Skew{}
	_ sched.Shaper    = Skew{}
	_ sched.NodeBound = Skew{}
)

func (s Skew) rule(v *sched.View, j sched.JobID) sched.Placer {
	if s.skewed(v, j) {
		return Consolidate{}
	}
	return Packed{}
}

// skewed: an unknown model is not skewed.
func (s Skew) skewed(v *sched.View, j sched.JobID) bool {
	spec := v.Jobs[j].Spec
	if spec.GPUs.Want == 1 || spec.Model == "" {
		return false
	}
	skew, known := s.Of(spec.Model)
	return known && skew > s.Limit
}

// Shape is 1 for a job that is consolidated.
func (s Skew) Shape(v *sched.View, j sched.JobID) int32 {
	if s.skewed(v, j) {
		return 1
	}
	return 0
}

// Need is that of a consolidated gang for a skewed model; for others any GPUs do.
func (s Skew) Need(v *sched.View, l *sched.Ledger, j sched.JobID, n int) sched.NodeNeed {
	if s.skewed(v, j) {
		return Consolidate{}.Need(v, l, j, n)
	}
	return sched.NodeNeed{}
}

// Fits reports whether the gang can be placed now.
func (s Skew) Fits(v *sched.View, l *sched.Ledger, j sched.JobID, n int) bool {
	return s.rule(v, j).Fits(v, l, j, n)
}

// Place places the gang.
func (s Skew) Place(v *sched.View, l *sched.Ledger, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	return s.rule(v, j).Place(v, l, j, n, dst)
}
