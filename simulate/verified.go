package simulate

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

// Verified is what came of a plan in simulation.
type Verified struct {
	System string   // that carried it out
	Seeds  int      // simulations, with arrivals of their own
	Jobs   int      // in all of them, after the warm-up
	Hours  float64  // that each of them went on, after the warm-up
	JCT    Interval // hours
	GPUs   Interval // paid for, on average
}

// How long a verification goes on: until about so many jobs have arrived, but at least so many times the mean
// completion time; a quarter of it is warm-up.
const (
	verifyJobs  = 400
	verifyTimes = 20
)

// asPlanned are the settings under which a system follows a plan whatever it turns out to cost.
var asPlanned = map[string]string{"information": "perfect", "correct": "no"}

// Verify simulates a system that rents with perfect information, boa or boa-exact, on jobs that arrive at random,
// Poisson, all of a class of one size, where nodes of one GPU are there at once: what a plan takes for granted, but
// that whole jobs come and go. jct is the mean time that the plan expects, in hours. Seeds of arrivals
// count up from first.
func Verify(ctx context.Context, kinds []Kind, system string, budget, jct float64, first uint64,
	seeds int) (*Verified, error) {
	m := &LongRun{PerNode: 1, Apps: make(map[string]speedup.App)}
	var restarts []string
	for i, k := range kinds {
		model := fmt.Sprint("class", i)
		m.Apps[model] = k.App
		m.Rate += k.PerHour
		restarts = append(restarts, fmt.Sprintf("%s=%v", model, k.Restart))
		m.Draw = append(m.Draw, sched.JobSpec{Model: model, GPUs: sched.Range{Min: 1, Want: 1, Max: int32(k.Most)}})
		m.Mix = append(m.Mix, speedup.Class{Model: model, Rate: k.PerHour / 3600,
			Chain: speedup.ChainOf(k.App, 1, k.Most, sched.BatchRange{})})
	}
	for _, k := range kinds {
		m.Shares = append(m.Shares, k.PerHour/m.Rate)
	}
	m.Restart = strings.Join(restarts, ",")
	v := &Verified{System: system, Seeds: seeds, Hours: max(verifyJobs/m.Rate, verifyTimes*jct)}
	m.WarmUp = v.Hours / 4
	m.Hours = v.Hours + m.WarmUp
	var spend, jcts []float64
	for seed := range seeds {
		out, gpus, err := m.Run(ctx, system, asPlanned, budget, first+uint64(seed))
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
		spend, jcts = append(spend, gpus), append(jcts, m.SettledJCT(out)/3600)
	}
	v.GPUs, v.JCT = Students(spend), Students(jcts)
	return v, nil
}
