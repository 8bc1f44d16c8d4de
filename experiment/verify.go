package experiment

import (
	"context"
	"fmt"
	"strings"

	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// Kind is a class of jobs of a plan to be verified.
type Kind struct {
	App     speedup.App
	PerHour float64 // arrivals
	Restart float64 // seconds, at the first start as well
	Most    int     // GPUs
}

// Interval is a mean over seeds with its 95 % bootstrap interval.
type Interval = estimate

// Verified is what came of a plan in simulation.
type Verified struct {
	System string   // that carried it out
	Seeds  int      // simulations, with arrivals of their own
	Jobs   int      // in all of them, after the warm-up
	Hours  float64  // that each of them went on, after the warm-up
	JCT    Interval // hours
	GPUs   Interval // paid for, on average
}

// How long a verification goes on: until about so many jobs have arrived, but at least so many times the mean completion
// time; a quarter of it is warm-up.
const (
	verifyJobs  = 400
	verifyTimes = 20
)

// Verify simulates a system that rents with perfect information, boa or boa-exact, on jobs that arrive at random, Poisson,
// all of a class of one size, where nodes of one GPU are there at once: what a plan takes for granted, but that whole jobs
// come and go. jct is the mean time that the plan expects, in hours.
func Verify(ctx context.Context, kinds []Kind, system string, budget, jct float64, seeds int) (*Verified, error) {
	m := &boaMix{asIs: true, perNode: 1, apps: make(map[string]speedup.App)}
	var restarts []string
	for i, k := range kinds {
		model := fmt.Sprint("class", i)
		m.apps[model] = k.App
		m.rate += k.PerHour
		restarts = append(restarts, fmt.Sprintf("%s=%v", model, k.Restart))
		m.draw = append(m.draw, sched.JobSpec{Model: model, GPUs: sched.Range{Min: 1, Want: 1, Max: int32(k.Most)}})
		m.mix = append(m.mix, speedup.Class{Model: model, Rate: k.PerHour / 3600, Chain: speedup.ChainOf(k.App, 1, k.Most, sched.BatchRange{})})
	}
	for _, k := range kinds {
		m.shares = append(m.shares, k.PerHour/m.rate)
	}
	m.restart = strings.Join(restarts, ",")
	v := &Verified{System: system, Seeds: seeds, Hours: max(verifyJobs/m.rate, verifyTimes*jct)}
	m.WarmUp = v.Hours / 4
	m.Hours = v.Hours + m.WarmUp
	var spend, jcts []float64
	for seed := range seeds {
		out, gpus, err := m.simulate(ctx, system, "perfect", budget, uint64(seed)+1)
		if err != nil {
			return nil, err
		}
		if out.Unfinished > 0 {
			return nil, fmt.Errorf("experiment: %d of %d jobs did not finish", out.Unfinished, out.Jobs)
		}
		for i := range out.PerJob {
			if out.PerJob[i].Submit.Seconds() >= m.WarmUp*3600 {
				v.Jobs++
			}
		}
		spend, jcts = append(spend, gpus), append(jcts, m.settledJCT(out)/3600)
	}
	v.GPUs, v.JCT = bootstrap(spend), bootstrap(jcts)
	return v, nil
}
