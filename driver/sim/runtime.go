package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// Runtime is the model of how jobs run. The zero value is an ideal world: nothing costs time, placement has no effect,
// a gang of twice the width asked for is twice as fast. All times are of the simulated clock.
//
// The work an attempt does per time is
//
//	Speed(job, config, placement, done) * Capped(job, cap) / (Slowdown(job, gpus, ...) * interference * disturbance)
//
// Where jobs share GPUs, interference is that of the GPU on which the gang suffers most: a synchronous gang waits for
// its slowest rank. So is the disturbance.
type Runtime struct {
	// Restart is charged at every start of a job but its first: it holds its GPUs and makes no progress. Default of the
	// command line 62 s: Gu et al., NSDI'19, section 5.2.4 as quoted by Lucid's source: 13,724 s over 221 preemptions.
	Restart time.Duration
	// RestartOf is Restart by job; nil = Restart.
	RestartOf func(job *trace.Job) time.Duration
	// RestartAtFirst charges Restart at the first start as well (as Pollux's simulator does).
	RestartAtFirst bool
	// StartDelay and StopDelay pass between an order and the attempt being up or gone. GPUs are held meanwhile.
	StartDelay, StopDelay time.Duration
	// Boot passes between the request for a sleeping node and the node being up, unless its specification says how
	// long.
	Boot time.Duration
	// Checkpoint is the time between periodic checkpoints: a lost node costs the work since the last. 0 = nothing is
	// lost.
	Checkpoint time.Duration
	// Penalty is added to the remaining work of a job of the given width at each preemption; nil = none.
	Penalty func(width int) time.Duration

	// Speed is the work per time of a job that has done so much, on a placement (the number of GPUs on each of its
	// nodes), and the work at which it changes next (0 = it does not). nil, or rate 0 and until < 0 = nothing is known
	// of the job: its GPUs over those it asked for. Rate must be positive; nothing may be kept of placement.
	//
	// OnType is the same where the GPUs are all of a type, and goes before it; nil = Speed. A gang on several types
	// goes as on the slowest of them.
	Speed  func(job *trace.Job, c sched.Config, placement []int, done time.Duration) (rate float64, until time.Duration)
	OnType func(job *trace.Job, t sched.TypeID, c sched.Config, placement []int, done time.Duration) (rate float64,
		until time.Duration)
	// Slowdown is the time a unit of work takes on gpus, which are on the given number of nodes where need would do,
	// relative to the nominal; nil = 1. It must be positive and keep nothing of v and gpus.
	Slowdown func(v *sched.View, job *trace.Job, gpus []sched.GPUID, nodes, need int) float64
	// Interference is the time a unit of work takes next to other jobs on the same GPU, in order of their ids, relative
	// to the job alone; nil = 1. It is not asked about jobs that are alone, and keeps nothing of others.
	Interference func(job *trace.Job, others []*trace.Job) float64
	// Capped is the speed under a power cap per GPU relative to none; nil = 1.
	Capped func(job *trace.Job, cap sched.Watts) float64
	// Changes disturb GPUs, in order of time: nothing reports them.
	Changes []Change

	// Report is the time between the reports of an attempt on its progress, from when it works; 0 = every change of
	// rate is reported at once, exactly. With Report, a rate is the mean since the last report, times a lognormal
	// factor with median 1 and deviation Noise of its logarithm, drawn from Seed.
	Report time.Duration
	Noise  float64
	Seed   uint64

	// EpochEnd is the work done at the end of a job's epoch, from 1, rising; nil, or beyond the duration, = there is no
	// such.
	EpochEnd func(job *trace.Job, epoch int) time.Duration
}

// Change has a unit of work take Factor times as long on GPUs from At on; 1 = as it should.
type Change struct {
	At     sched.Time
	GPUs   []sched.GPUID
	Factor float64 // > 0
}

func (r *Runtime) restart(j *trace.Job) time.Duration {
	if r.RestartOf != nil {
		return r.RestartOf(j)
	}
	return r.Restart
}

func (r *Runtime) validate() error {
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"restart", r.Restart}, {"start delay", r.StartDelay}, {"stop delay", r.StopDelay}, {"boot", r.Boot},
		{"checkpoint", r.Checkpoint}, {"report", r.Report}} {
		if d.d < 0 {
			return fmt.Errorf("sim: %s %v, want >= 0", d.name, d.d)
		}
	}
	if !(r.Noise >= 0) || math.IsInf(r.Noise, 0) {
		return fmt.Errorf("sim: noise %v, want >= 0", r.Noise)
	}
	for i, c := range r.Changes {
		if !(c.Factor > 0) || math.IsInf(c.Factor, 0) || i > 0 && c.At < r.Changes[i-1].At {
			return fmt.Errorf("sim: change %d at %v by %v, want order of time and a factor > 0", i, c.At, c.Factor)
		}
	}
	return nil
}
