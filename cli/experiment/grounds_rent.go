package experiment

import (
	"context"
	"fmt"

	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/simulate"
)

// rental is a world in which GPUs are rented to a budget.
type rental struct {
	of   simulate.LongRun
	seed uint64
	// Budget is that of worth, in GPUs on average. Those at home have another where there is a cap, so that both spend
	// the same: it was found on the half for choosing.
	budget, home float64
	cap          int // GPUs rented at most; 0 = far more than the budget
}

// boaHome are the systems of BOA, as they learn.
var boaHome = []contender{
	{"boa-exact, price", "boa-exact", map[string]string{"information": "price"}},
	{"boa-exact", "boa-exact", nil},
	{"boa", "boa", nil},
}

// boaGround is BOA's own mix. Without a cap worth decides as boa-exact does by a price: better is not to be had.
func boaGround(data string) []groundRow {
	var rows []groundRow
	for _, c := range []struct {
		budget, home float64
		cap          int
		best         string
		bar          float64
	}{
		{24, 24, 0, "boa-exact, price", 0}, {32, 32, 0, "boa-exact, price", 0}, {48, 48, 0, "boa-exact, price", 0},
		{48, 42.4, 48, "boa-exact, price", .05}, {48, 36.9, 40, "boa-exact", .05}, {48, 31, 32, "boa-exact", .05},
	} {
		name := fmt.Sprintf("BOA's mix, %v GPUs paid for", c.budget)
		if c.cap > 0 {
			name = fmt.Sprintf("BOA's mix, at most %d GPUs, about %v paid for", c.cap, c.home)
		}
		rows = append(rows, groundRow{Name: name, Home: boaHome, Best: c.best, Bar: c.bar,
			Worlds: func(deciding bool, n int) (list []world, err error) {
				if data == "" {
					return nil, errNoData
				}
				mixes, err := boaMixes(Options{Data: data})
				if err != nil {
					return nil, err
				}
				run := mixes[0].LongRun
				run.Hours, run.WarmUp = 60, 20
				for _, seed := range halfSeeds(deciding, n) {
					list = append(list, world{Name: fmt.Sprint("seed ", seed),
						Rental: &rental{of: run, seed: seed, budget: c.budget, home: c.home, cap: c.cap}})
				}
				return list, nil
			}})
	}
	return rows
}

// run simulates a system, and returns what it paid for as well, in GPUs on average. The mean completion time is of the
// jobs after the warm-up.
func (r *rental) run(ctx context.Context, c contender, adapt func(*pipeline.Stages)) (*simulate.Outcome, float64,
	error) {
	of, budget, keys := r.of, r.home, plus(c.Settings, map[string]string{})
	if of.Adapt = adapt; adapt != nil {
		budget = r.budget
	}
	switch {
	case r.cap > 0 && adapt != nil:
		keys["max_gpus"] = fmt.Sprint(r.cap)
	case r.cap > 0:
		keys["max_nodes"] = fmt.Sprint(r.cap / of.PerNode)
	}
	out, paid, err := of.Run(ctx, c.System, keys, budget, r.seed)
	if err != nil {
		return nil, 0, err
	}
	out.AvgJCT = of.SettledJCT(out)
	return out, paid, nil
}
