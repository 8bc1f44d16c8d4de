package experiment

import (
	"context"
	"fmt"

	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/simulate"
)

// rental is a world in which GPUs are rented to a budget.
type rental struct {
	of     simulate.LongRun
	seed   uint64
	budget float64 // GPUs on average
	cap    int     // GPUs rented at most; 0 = far more than the budget
}

// boaHome are the systems of BOA, as they learn.
var boaHome = []contender{
	{"boa-exact, price", "boa-exact", map[string]string{"information": "price"}},
	{"boa-exact", "boa-exact", nil},
	{"boa", "boa", nil},
}

// boaGround is BOA's own mix. Without a cap worth decides as boa-exact does by a price: better is not to be had.
// With a cap the budgets are those with which boa-exact was fastest on the half for choosing: with more money it is
// slower there.
func boaGround(data string) []groundRow {
	var rows []groundRow
	for _, c := range []struct {
		budget float64
		cap    int
		best   string
		bar    float64
	}{
		{24, 0, "boa-exact, price", 0}, {32, 0, "boa-exact, price", 0}, {48, 0, "boa-exact, price", 0},
		{38, 48, "boa-exact, price", .05}, {33, 40, "boa-exact", .05}, {28, 32, "boa-exact", .05},
	} {
		name := fmt.Sprintf("BOA's mix, %v GPUs paid for", c.budget)
		if c.cap > 0 {
			name += fmt.Sprintf(", at most %d", c.cap)
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
						Rental: &rental{of: run, seed: seed, budget: c.budget, cap: c.cap}})
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
	of, keys := r.of, plus(c.Settings, map[string]string{})
	of.Adapt = adapt
	switch {
	case r.cap > 0 && adapt != nil:
		keys["max_gpus"] = fmt.Sprint(r.cap)
	case r.cap > 0:
		keys["max_nodes"] = fmt.Sprint(r.cap / of.PerNode)
	}
	out, paid, err := of.Run(ctx, c.System, keys, r.budget, r.seed)
	if err != nil {
		return nil, 0, err
	}
	out.AvgJCT = of.SettledJCT(out)
	return out, paid, nil
}
