package order

import (
	"fmt"
	"math"
	"slices"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/gittins"
	"github.com/trainyard/trainyard/sched"
)

// GittinsIndex is the index of a distribution of attained service with a quantum per queue: the upper limit of the
// queue, infinite for the last one; or one static quantum.
//
// Source: Gu et al., NSDI'19 (Tiresias), discretised 2D-Gittins; the index itself is the textbook one.
type GittinsIndex struct {
	limits []float64
	delta  float64 // 0 = per queue
	tables []*gittins.Table
}

// NewGittinsIndex returns the index for queues with the given limits; delta > 0 makes it static. A nil sample, nothing
// being known yet, ranks all jobs alike.
func NewGittinsIndex(sample *dist.Empirical, limits []float64, delta float64) *GittinsIndex {
	x := &GittinsIndex{limits: limits, delta: delta}
	x.build(sample)
	return x
}

func (x *GittinsIndex) build(sample *dist.Empirical) {
	switch {
	case sample == nil:
		x.tables = nil
	case x.delta > 0:
		x.tables = gittins.NewTables(sample, []float64{x.delta}, 0)
	default:
		x.tables = gittins.NewTables(sample, append(slices.Clone(x.limits), math.Inf(1)), 0)
	}
}

// At returns the index of attained service a in queue q and the next edge.
func (x *GittinsIndex) At(a float64, q int) (index, until float64) {
	if len(x.tables) == 0 {
		return 0, math.Inf(1)
	}
	t := x.tables[min(q, len(x.tables)-1)]
	return t.At(a), t.NextEdge(a)
}

// LearnedGittins is an MLFQ whose index is learned from the service of the jobs that finished before.
type LearnedGittins struct {
	*MLFQ
	index   *GittinsIndex
	learned dist.Learned
}

// NewLearnedGittins returns the order; it knows nothing at first and then ranks by queue and arrival alone.
func NewLearnedGittins(limits []float64, seconds bool, knob, delta float64) (*LearnedGittins, error) {
	index := NewGittinsIndex(nil, limits, delta)
	q, err := NewMLFQ(limits, seconds, knob, index)
	if err != nil {
		return nil, err
	}
	return &LearnedGittins{MLFQ: q, index: index}, nil
}

var (
	_ sched.Orderer  = (*LearnedGittins)(nil)
	_ sched.Turns    = (*LearnedGittins)(nil)
	_ sched.Observer = (*LearnedGittins)(nil)
	_ sched.Reviser  = (*LearnedGittins)(nil)
)

// Observe learns the attained service of a job that finished.
func (g *LearnedGittins) Observe(v *sched.View, e *sched.Event) {
	if e.Kind != sched.AttemptEnded || e.Outcome != sched.Finished {
		return
	}
	a, _ := attained(v, e.Job, g.Seconds)
	was := g.learned.Version()
	g.learned.Observe(a)
	if g.learned.Version() != was {
		g.index.build(g.learned.Sample())
	}
}

// Revision rises when the table was built again.
func (g *LearnedGittins) Revision() uint64 { return uint64(g.learned.Version()) }

// Format names what is saved.
func (*LearnedGittins) Format() string { return "learned-gittins/1" }

// SaveRest appends the queues' memory and what was learned.
func (g *LearnedGittins) SaveRest(b []byte) []byte {
	return g.learned.Save(memo.Part(b, g.MLFQ.Format(), g.MLFQ.SaveRest(nil)))
}

// LoadRest restores what SaveRest wrote.
func (g *LearnedGittins) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	queues, _ := r.Part(g.MLFQ.Format())
	if err := r.Err(); err != nil {
		return fmt.Errorf("order: memory of learned sizes: %w", err)
	}
	if err := g.MLFQ.LoadRest(queues); err != nil {
		return err
	}
	if err := g.learned.Load(r.Rest()); err != nil {
		return err
	}
	g.index.build(g.learned.Sample())
	return nil
}
