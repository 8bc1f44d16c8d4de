package boa

import (
	"slices"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// arrivals counts what has arrived, by application and weight, in order of their first.
type arrivals []seen

// seen is what arrived of an application, of equal weight.
type seen struct {
	Model  string
	Weight float64
	Jobs   int
	Last   sched.JobID // the curves are those of the latest
}

// add counts job j.
func (a *arrivals) add(j sched.JobID, model string, weight float64) {
	i := slices.IndexFunc(*a, func(s seen) bool { return s.Model == model && s.Weight == weight })
	if i < 0 {
		i, *a = len(*a), append(*a, seen{Model: model, Weight: weight})
	}
	(*a)[i].Jobs++
	(*a)[i].Last = j
}

// classes appends the classes of the jobs that arrived within so many seconds, with the curves as they are known.
func (a arrivals) classes(v *sched.View, m *menu, seconds float64, dst []price.Class) []price.Class {
	for _, s := range a {
		if chain, _, _ := m.curves.Chain(v, s.Last); chain != nil {
			c := m.classOf(speedup.Class{Model: s.Model, Rate: float64(s.Jobs) / seconds, Chain: chain})
			c.Weight = s.Weight
			dst = append(dst, c)
		}
	}
	return dst
}
