package place

import (
	"fmt"
	"math"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/sched"
)

// LearnedSkew is Skew with a limit fitted to what happened: how much slower gangs of known skew ran where they were
// spread. Until enough has been seen on both sides nothing is consolidated, so that there is something to see.
//
// Source: Gu et al., NSDI'19 (Tiresias): PACKLIMIT is re-fitted periodically by a linear classifier over placement and
// performance of past jobs. Deviation: how the released system starts is not known; ours starts by spreading.
type LearnedSkew struct {
	sched.ByName

	Skew
	seen     skew.Limit
	fresh    uint64 // observations since the limit was last fitted
	revision uint64
}

// refitEvery is how many observations apart the limit is fitted: a fit costs as much as sorting all that are
// remembered.
const refitEvery = skew.MinPerSide

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
	if !e.ReportsRate() {
		return
	}
	j, slowdown := &v.Jobs[e.Job], 1/e.Rate
	of, known := s.Of(j.Spec.Model)
	if !known || math.IsInf(slowdown, 1) || !asAsked(j) || !isSpread(v, j.GPUs) {
		return
	}
	s.seen.Observe(of, slowdown)
	if s.fresh++; s.fresh >= refitEvery {
		s.fresh = 0
		s.refit()
	}
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

// isSpread reports whether a set is on more nodes than it would need of the widest of its type.
func isSpread(v *sched.View, set []sched.GPUID) bool {
	nodes, widest := 0, 0
	for i, g := range set {
		if i == 0 || v.GPUs[g].Node != v.GPUs[set[i-1]].Node {
			nodes++
		}
	}
	if nodes < 2 {
		return false
	}
	typ := v.Nodes[v.GPUs[set[0]].Node].Spec.Type
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.Spec.Type == typ && n.State != sched.NodeGone {
			widest = max(widest, n.Spec.GPUs)
		}
	}
	return nodes > (len(set)+widest-1)/widest
}

// Revision rises when the limit changes.
func (s *LearnedSkew) Revision() uint64 { return s.revision }

// Format names what is saved.
func (*LearnedSkew) Format() string { return "learned-skew/1" }

// SaveJob writes nothing: what is learned is learned of models.
func (s *LearnedSkew) SaveJob(_ sched.JobID, b []byte) []byte { return b }

// LoadJob reads nothing.
func (s *LearnedSkew) LoadJob(sched.JobID, []byte) error { return nil }

// SaveRest appends the limit, which need not be what would be fitted now, its revision, and what was seen.
func (s *LearnedSkew) SaveRest(b []byte) []byte {
	return s.seen.Save(memo.Uint(memo.Uint(memo.Float(b, s.Limit), s.revision), s.fresh))
}

// LoadRest restores what SaveRest wrote. On error all stays as it was.
func (s *LearnedSkew) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	limit, revision, fresh := r.Float(), r.Uint(math.MaxUint64), r.Uint(refitEvery-1)
	r.Want(limit >= 0 && limit <= 1, "limit %v, want 0..1", limit)
	if err := r.Err(); err != nil {
		return fmt.Errorf("place: memory of a learned limit: %w", err)
	}
	if err := s.seen.Load(r.Rest()); err != nil {
		return err
	}
	s.Limit, s.revision, s.fresh = limit, revision, fresh
	return nil
}
