package trace

import (
	"iter"
	"strconv"
)

// All yields the jobs, named 0, 1, 2, ..., in order of submission, in memory that does not grow with their number. The
// rate is such that expected work over expected gap is exactly Load*GPUs, if there is a Load, with the mean of the laws
// in closed form; a finite trace differs by chance, and by rounding to the quantum. With a profile, the rate is that
// over the time the jobs are expected to take, whatever part of a week that is and whatever chance made of its hours
// and bursts. What jobs are like is drawn independently of when they arrive, but for bursts. It panics with the text of
// Validate if g is wrong.
func (g Generator) All() iter.Seq[Job] {
	s := newSource(g)
	return func(yield func(Job) bool) {
		s := *s // each walk starts again
		s.begin()
		var d draft
		for i := range g.Jobs {
			s.next(&d)
			if !yield(s.job(strconv.Itoa(i), &d)) {
				return
			}
		}
	}
}
