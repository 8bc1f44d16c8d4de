package plan

import (
	"context"
	"fmt"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
)

// verifySeeds is how often a plan is simulated.
const verifySeeds = 5

// verify simulates the plan.
func (p *planned) verify(ctx context.Context) error {
	w := p.workload
	switch {
	case len(w.types) > 1:
		return term.Usagef("--verify: jobs that may run on GPUs of several types cannot be simulated to a budget, "+
			"but %s has %d; want one", w.path, len(w.types))
	case w.weighted():
		return term.Usagef("--verify: the systems that rent do not weigh jobs, but %s does; want equal weights", w.path)
	}
	var kinds []simulate.Kind
	for i := range w.kinds {
		k := &w.kinds[i]
		most := 0
		for _, gpus := range k.widths(0) {
			most = max(most, gpus)
		}
		kinds = append(kinds, simulate.Kind{App: kindApp{k}, PerHour: k.rate, Restart: 3600 * k.restart, Most: most})
	}
	gpus := p.budget / w.types[0].price
	v, err := simulate.Verify(ctx, kinds, p.method, gpus, p.best.jct, 1, verifySeeds)
	p.verified = v
	return err
}

// kindApp is a class of jobs as an application, which progresses by seconds on one GPU.
type kindApp struct{ k *jobKind }

// Sizes returns the sizes of the epochs.
func (a kindApp) Sizes() []float64 {
	var list []float64
	for i := range a.k.epochs {
		list = append(list, 3600*a.k.epochs[i].size)
	}
	return list
}

// Speed returns that of an epoch.
func (a kindApp) Speed(phase int, w speedup.Way) float64 { return a.k.epochs[phase].on[0].at(w.GPUs) }

// Best leaves the batch size to the job.
func (a kindApp) Best(phase, gpus, nodes int, _ sched.BatchRange) (speedup.Way, float64) {
	speed := a.Speed(phase, speedup.Way{GPUs: gpus})
	if speed == 0 {
		return speedup.Way{}, 0
	}
	return speedup.Way{GPUs: gpus, Nodes: nodes}, speed
}

// verifiedLine says what came of the plan.
func (p *planned) verifiedLine() string {
	v := p.verified
	return fmt.Sprintf("%s took %s (%s to %s) on %s GPUs (%s to %s): %d simulations of %s, 95 %% intervals",
		term.Counted(v.Jobs, "job"), term.ShortTime(3600*v.JCT.Mean), term.ShortTime(3600*v.JCT.Low),
		term.ShortTime(3600*v.JCT.High),
		short(v.GPUs.Mean), short(v.GPUs.Low), short(v.GPUs.High), v.Seeds, term.ShortTime(3600*v.Hours))
}
