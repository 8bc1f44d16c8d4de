package system

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// moves is a Mover that weighs nothing.
type moves struct{}

func (moves) Worth(*sched.View, sched.JobID, []sched.GPUID, []sched.GPUID) bool { return true }

// Ensure that a round in which all may be placed again counts like a quantum, unless moves are weighed.
func TestEvery(t *testing.T) {
	const m = time.Minute
	for _, c := range []struct {
		s    pipeline.Stages
		want time.Duration
	}{
		{pipeline.Stages{}, 0},
		{pipeline.Stages{Quantum: 2 * m}, 2 * m},
		{pipeline.Stages{Round: 3 * m}, 0},
		{pipeline.Stages{Round: 3 * m, Quantum: 2 * m}, 3 * m},
		{pipeline.Stages{Round: 3 * m, Replace: true}, 3 * m},
		{pipeline.Stages{Round: 3 * m, Replace: true, ReplaceEvery: 9 * m}, 9 * m},
		{pipeline.Stages{Round: 3 * m, Replace: true, Move: moves{}}, 0},
	} {
		if got := every(&c.s); got != c.want {
			t.Errorf("%+v: %v, want %v", c.s, got, c.want)
		}
	}
}
