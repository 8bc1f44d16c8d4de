package whatif

import (
	"time"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// measured has the jobs of the moment that run on more or fewer GPUs than they asked for be as fast on so many as they
// were measured there, in t, the first jobs of which are those of v. A job whose speed is a guess, and one that shares
// its GPUs now, goes by the number of its GPUs, as all do on other widths.
func measured(run *sim.Runtime, v *sched.View, t *trace.Trace, guessed map[sched.JobID]bool) {
	type pace struct {
		gpus int
		rate float64
	}
	tenants := make([]int, len(v.GPUs))
	for i := range v.Jobs {
		if j := &v.Jobs[i]; j.HoldsDevices() {
			for _, g := range j.GPUs {
				tenants[g]++
			}
		}
	}
	of := make(map[*trace.Job]pace)
	for i := range v.Jobs {
		j := &v.Jobs[i]
		if j.Attempt != sched.Running || !(j.Rate > 0) || len(j.GPUs) == int(j.Unit()) || guessed[sched.JobID(i)] {
			continue
		}
		most := 0
		for _, g := range j.GPUs {
			most = max(most, tenants[g])
		}
		if most == 1 {
			of[&t.Jobs[i]] = pace{len(j.GPUs), j.Rate}
		}
	}
	if len(of) == 0 {
		return
	}
	run.Speed = func(j *trace.Job, _ sched.Config, placement []int, _ time.Duration) (float64, time.Duration) {
		gpus := 0
		for _, n := range placement {
			gpus += n
		}
		if p, known := of[j]; known && p.gpus == gpus {
			return p.rate, 0
		}
		return 0, -1 // by the number of its GPUs
	}
}
