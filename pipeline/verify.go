package pipeline

import (
	"fmt"

	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

var (
	_ sched.Verifier = (*Pipeline)(nil)
	_ sched.Verifier = (*composed)(nil)
)

// Verify compares ledger and indices with the targets of the view. Between a decision and the next all agree, unless
// something was refused. It panics at the first difference.
func (p *Pipeline) Verify(v *sched.View) {
	if !p.primed || p.stale {
		return
	}
	for i := range v.Jobs {
		id, j := sched.JobID(i), &v.Jobs[i]
		if !arena.SameSet(p.books.ledger.Set(id), j.Target) {
			panic(fmt.Sprintf("engine: version %d: ledger has %v for job %d, target is %v", v.Version,
				p.books.ledger.Set(id), id, j.Target))
		}
		want := away
		switch {
		case len(j.Target) > 0:
			want = holding
		case j.Eligible():
			want = waiting
		}
		if i >= len(p.books.jobs) || p.books.jobs[i].in != want {
			panic(fmt.Sprintf("engine: version %d: job %d is taken for %v, want %v", v.Version, id, p.books.jobs[i].in,
				want))
		}
	}
}

// Verify has the Decider verify itself, if it can.
func (c *composed) Verify(v *sched.View) {
	if d, ok := c.Decider.(sched.Verifier); ok {
		d.Verify(v)
	}
}
