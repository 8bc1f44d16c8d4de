package sim

import (
	"fmt"
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// Runtime is the model of how jobs run. The zero value is an ideal world: nothing costs time, placement has no effect.
// All times are of the simulated clock.
type Runtime struct {
	// Restart is charged at every start of a job but its first: it holds its GPUs and makes no progress. Default of the
	// command line 62 s: Gu et al., NSDI'19, section 5.2.4 as quoted by Lucid's source: 13,724 s over 221 preemptions.
	Restart time.Duration
	// RestartAtFirst charges Restart at the first start as well (as Pollux's simulator does).
	RestartAtFirst bool
	// StartDelay and StopDelay pass between an order and the attempt being up or gone. GPUs are held meanwhile.
	StartDelay, StopDelay time.Duration
	// Boot passes between the wish for a sleeping node and the node being up, unless its specification says how long.
	Boot time.Duration
	// Checkpoint is the time between periodic checkpoints: a lost node costs the work since the last. 0 = nothing is lost.
	Checkpoint time.Duration
	// Penalty is added to the remaining work of a job of the given width at each preemption; nil = none.
	Penalty func(width int) time.Duration
	// Slowdown is the time a unit of work takes on gpus, which are on the given number of nodes where need would do, relative
	// to the nominal; nil = 1. It must be positive and keep nothing of gpus.
	Slowdown func(job *trace.Job, gpus []sched.GPUID, nodes, need int) float64
	// Epoch is the work in one epoch of a job; nil or 0 = the job has no epochs.
	Epoch func(job *trace.Job) time.Duration
}

func (r *Runtime) validate() error {
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"restart", r.Restart}, {"start delay", r.StartDelay}, {"stop delay", r.StopDelay}, {"boot", r.Boot}, {"checkpoint", r.Checkpoint}} {
		if d.d < 0 {
			return fmt.Errorf("sim: %s %v, want >= 0", d.name, d.d)
		}
	}
	return nil
}

// rate returns the work job t does per time on gpus.
func (d *Driver) rate(t *trace.Job, gpus []sched.GPUID) float64 {
	if d.runtime.Slowdown == nil {
		return 1
	}
	nodes, last := 0, sched.NodeID(sched.None)
	for _, g := range gpus { // in order, so the GPUs of a node are neighbours
		if n := d.view.GPUs[g].Node; n != last {
			nodes, last = nodes+1, n
		}
	}
	need := (len(gpus) + d.widest - 1) / d.widest
	return 1 / d.runtime.Slowdown(t, gpus, nodes, need)
}

// untilDone returns how long work takes at the given rate, rounded up to a nanosecond.
func untilDone(work time.Duration, rate float64) time.Duration {
	if rate == 1 || work <= 0 {
		return max(work, 0)
	}
	t := time.Duration(float64(work) / rate)
	for sched.ScaleDuration(t, rate) < work {
		t++
	}
	return t
}
