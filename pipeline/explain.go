package pipeline

import "github.com/trainyard/trainyard/sched"

var (
	_ sched.Explainer = (*Pipeline)(nil)
	_ sched.Explainer = (*composed)(nil)
)

// Explain has the stages say their figures of job id.
func (p *Pipeline) Explain(v *sched.View, id sched.JobID, say func(sched.Fact)) {
	for _, stage := range []any{p.s.Order, p.s.Allocate, p.s.Place, p.s.Admit, p.s.Move} {
		explainPart(stage, v, id, say)
	}
}

// Explain has the Decider and its parts say their figures of job id.
func (c *composed) Explain(v *sched.View, id sched.JobID, say func(sched.Fact)) {
	explainPart(c.Decider, v, id, say)
	for _, l := range c.before {
		explainPart(l, v, id, say)
	}
	for _, s := range c.provision {
		if p, ok := c.Decider.(*Pipeline); !ok || p.s.Allocate != any(s) { // else it has spoken as a stage
			explainPart(s, v, id, say)
		}
	}
}

func explainPart(part any, v *sched.View, id sched.JobID, say func(sched.Fact)) {
	if e, ok := part.(sched.Explainer); ok {
		e.Explain(v, id, say)
	}
}
