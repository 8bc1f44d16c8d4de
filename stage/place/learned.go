package place

import (
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/sched"
)

// LearnedSkew is Skew with a limit fitted to what happened: how much slower gangs of known skew ran where they were
// spread. Until enough has been seen on both sides nothing is consolidated, so that there is something to see.
//
// Source: Gu et al., NSDI'19 (Tiresias): PACKLIMIT is re-fitted periodically by a linear classifier over placement and
// performance of past jobs. Deviation: how the released system begins is not known; ours begins by spreading.
type LearnedSkew struct {
	Skew
	seen     skew.Limit
	revision uint64
}

// NewLearnedSkew returns the placer; of says what is known of models.
func NewLearnedSkew(of func(model string) (float64, bool)) *LearnedSkew {
	return &LearnedSkew{Skew: Skew{Of: of, Limit: 1}}
}

var (
	_ sched.Placer    = (*LearnedSkew)(nil)
	_ sched.Shaper    = (*LearnedSkew)(nil)
	_ sched.NodeBound = (*LearnedSkew)(nil)
	_ sched.Observer  = (*LearnedSkew)(nil)
	_ sched.Reviser   = (*LearnedSkew)(nil)
	_ sched.Memory    = (*LearnedSkew)(nil)
)

// Observe learns from the rate at which a spread gang runs.
func (s *LearnedSkew) Observe(v *sched.View, e *sched.Event) {
	if e.Kind != sched.AttemptStarted && e.Kind != sched.Progressed || !(e.Rate > 0) {
		return
	}
	j := &v.Jobs[e.Job]
	of, known := s.Of(j.Spec.Model)
	if !known || !isSpread(v, j.GPUs) {
		return
	}
	s.seen.Observe(of, 1/e.Rate)
	s.refit()
}

func (s *LearnedSkew) refit() {
	limit := 1.0
	if slow, fine := s.seen.Count(); slow >= skew.MinPerSide && fine >= skew.MinPerSide || s.Limit < 1 {
		limit = s.seen.Fit()
	}
	if limit != s.Limit {
		s.Limit = limit
		s.revision++
	}
}

// isSpread reports whether a set is on more nodes than one, though the widest of them would hold it.
func isSpread(v *sched.View, set []sched.GPUID) bool {
	nodes, widest := 0, 0
	for i, g := range set {
		n := v.GPUs[g].Node
		if i == 0 || n != v.GPUs[set[i-1]].Node {
			nodes++
			widest = max(widest, v.Nodes[n].Spec.GPUs)
		}
	}
	return nodes > 1 && nodes > (len(set)+widest-1)/widest
}

// Revision rises when the limit changes.
func (s *LearnedSkew) Revision() uint64 { return s.revision }

// SaveJob writes nothing: what is learned is learned of models.
func (s *LearnedSkew) SaveJob(_ sched.JobID, b []byte) []byte { return b }

// LoadJob reads nothing.
func (s *LearnedSkew) LoadJob(sched.JobID, []byte) error { return nil }

// SaveRest appends what was seen.
func (s *LearnedSkew) SaveRest(b []byte) []byte { return s.seen.Save(b) }

// LoadRest restores what SaveRest wrote.
func (s *LearnedSkew) LoadRest(b []byte) error {
	if err := s.seen.Load(b); err != nil {
		return err
	}
	s.refit()
	return nil
}
