package simulate

import (
	"cmp"
	"slices"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/watch"
)

// disturbances returns what spells change, in order of time. Where one ends as another starts the end comes first.
func disturbances(spells []variability.Spell) []sim.Change {
	var list []sim.Change
	for _, s := range spells {
		gpus := []sched.GPUID{sched.GPUID(s.GPU)}
		list = append(list, sim.Change{At: s.From, GPUs: gpus, Factor: s.Factor})
		if s.To != sched.Never {
			list = append(list, sim.Change{At: s.To, GPUs: gpus, Factor: 1})
		}
	}
	slices.SortStableFunc(list, func(a, b sim.Change) int {
		return cmp.Or(cmp.Compare(a.At, b.At), -cmp.Compare(flag(a.Factor == 1), flag(b.Factor == 1)))
	})
	return list
}

func flag(x bool) int {
	if x {
		return 1
	}
	return 0
}

// slow returns the truth of the spells, nil if there are none.
func (s *Request) slow(spells []variability.Spell) watch.Truth {
	if len(spells) == 0 {
		return nil
	}
	of := make([][]variability.Spell, s.Cluster.MostGPUs())
	for _, x := range spells {
		if x.GPU < len(of) {
			of[x.GPU] = append(of[x.GPU], x)
		}
	}
	return func(g sched.GPUID, now sched.Time) (float64, sched.Time) {
		if int(g) >= len(of) {
			return 1, sched.Never
		}
		for _, x := range of[g] {
			switch {
			case now < x.From:
				return 1, x.From
			case now < x.To:
				return x.Factor, x.To
			}
		}
		return 1, sched.Never
	}
}
