package pipeline

import "github.com/trainyard/trainyard/sched"

// Pricer returns what puts a price on GPUs in the Decider; nil = nothing does.
func (b *Brief) Pricer() sched.Pricer { return b.pricer }

// pricerOf returns what puts a price on GPUs in a Decider; nil = nothing does.
func pricerOf(dec sched.Decider) sched.Pricer {
	switch d := dec.(type) {
	case *composed:
		return pricerOf(d.Decider)
	case *Pipeline:
		p, _ := d.s.Allocate.(sched.Pricer)
		return p
	}
	return nil
}
