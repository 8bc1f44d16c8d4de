package pipeline

import "github.com/trainyard/trainyard/sched"

// PricerOf returns what puts a price on GPUs in a Decider; nil = nothing does. It reads nothing that decisions change,
// so that any goroutine may ask.
func PricerOf(dec sched.Decider) sched.Pricer {
	switch d := dec.(type) {
	case *composed:
		return PricerOf(d.Decider)
	case *Pipeline:
		p, _ := d.s.Allocate.(sched.Pricer)
		return p
	}
	return nil
}
