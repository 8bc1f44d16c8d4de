package simulate

import (
	"fmt"
	"math"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/pipeline"
	replica "github.com/trainyard/trainyard/replica/tiresias"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// tiresiasPreset: the schedules without quirks go through the engine; those around the multi-level feedback queue,
// whose jump-time and tie bugs fit no clean stage, through their replica.
var tiresiasPreset = map[string]preset{
	"fifo":             {defaults: counted, adapt: strict, demand: yarnDemand},
	"fifo-skip":        {defaults: counted, adapt: strict, demand: yarnDemand},
	"fewest-gpus":      {defaults: counted, adapt: listTies},
	"srtf":             {defaults: counted, adapt: listTies},
	"srsf":             {defaults: counted, adapt: listTies},
	"tiresias-las":     {defaults: counted, alone: publishedQueues},
	"tiresias-gittins": {defaults: counted, alone: publishedQueues},
}

var counted = map[string]string{"placement": "count", "restart_overhead": "0", "spread_penalty": "0"}

// strict has a job that can never fit block those behind it, where a misfit does.
func strict(s *pipeline.Stages, _ *sim.Runtime) { s.Block = true }

// listTies has ties keep the order of the list.
func listTies(s *pipeline.Stages, _ *sim.Runtime) { s.KeepOrder = true }

// yarnDemand gives a job the CPUs and memory the released simulator's yarn placement counts: 2 CPUs for one GPU, else 6
// per GPU; 5 GB on one node, else 11 + 0.1 GB times the width per GPU.
func yarnDemand(spec *sched.JobSpec, c *cluster.Cluster) {
	w, size := float32(spec.GPUs.Want), 0
	for i := range c.Nodes {
		size = max(size, c.Nodes[i].GPUs)
	}
	spec.CPUs = 6
	if w == 1 {
		spec.CPUs = 2
	}
	spec.MemoryGB = 5 / w
	if int(w) > size {
		spec.MemoryGB = 11 + 0.1*w
	}
}

// publishedQueues runs the replica of the released simulator.
func publishedQueues(s *Request, set *key.Settings) (replicaRun, error) {
	p, err := publishedParams(s, set)
	if err != nil {
		return nil, err
	}
	jobs := make([]replica.Job, len(s.Trace.Jobs))
	for i := range s.Trace.Jobs {
		j := &s.Trace.Jobs[i]
		submit := time.Duration(j.Spec.Submit)
		if submit%time.Second != 0 || j.Duration%time.Second != 0 {
			return nil, fmt.Errorf("preset: tiresias: job %s: submit %v, duration %v, want whole seconds", j.Spec.Name,
				submit, j.Duration)
		}
		jobs[i] = replica.Job{ID: j.Spec.Name, GPUs: int(j.Spec.GPUs.Want), Submit: int64(submit / time.Second),
			Duration: int64(j.Duration / time.Second)}
	}
	return func(stop func() bool) (*Outcome, error) {
		p.Stop = stop
		return outcomeOf(s, jobs, replica.Run(jobs, p)), nil
	}, nil
}

// honoured refuses what the replica knows nothing of.
func honoured(s *Request, set *key.Settings) error {
	switch {
	case s.Round > 0:
		return fmt.Errorf("preset: tiresias: %s has no rounds", s.System)
	case len(s.Inject) > 0:
		return fmt.Errorf("preset: tiresias: %s takes no events from outside", s.System)
	}
	err := wantZero(set, s.System+" is the released simulator, which", system.RestartOverhead.Key,
		system.StartDelay.Key, system.StopDelay.Key,
		system.MinRun.Key, system.UserLimit.Key)
	if err != nil {
		return fmt.Errorf("preset: tiresias: %w", err)
	}
	return nil
}

// whole returns limits as whole numbers, or the first that is not one.
func whole(name string, xs ...float64) ([]int64, error) {
	list := make([]int64, len(xs))
	for i, x := range xs {
		if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
			return nil, fmt.Errorf("preset: tiresias: %s %v, want a whole number", name, x)
		}
		list[i] = int64(x)
	}
	return list, nil
}

func publishedParams(s *Request, set *key.Settings) (replica.Params, error) {
	p := replica.Params{GPUs: s.Cluster.GPUs(), Knob: system.PromoteKnob.Get(set),
		Seconds: system.Unit.Get(set) == "seconds",
		Gittins: s.System == "tiresias-gittins"}
	if err := honoured(s, set); err != nil {
		return p, err
	}
	var err error
	if p.Limits, err = whole("thresholds", system.Thresholds.Get(set)...); err != nil {
		return p, err
	}
	wantWord(set, system.Placement, "count")
	if p.Gittins {
		asked := float64(replica.DefaultDelta)
		if system.Delta.Given(set) {
			asked = system.Delta.Get(set)
		}
		delta, err := whole("delta", asked)
		if err != nil {
			return p, err
		}
		p.Delta = delta[0]
		sizes := system.Distribution.Get(set)
		if sizes == nil && (p.Knob == 0 || math.IsInf(p.Knob, 1)) {
			return p, fmt.Errorf("preset: tiresias: tiresias-gittins wants --set tiresias-gittins.distribution=FILE")
		}
		if sizes != nil {
			for _, x := range sizes.Sizes() {
				p.Samples = append(p.Samples, int64(x))
			}
		}
	}
	if err := set.Err(); err != nil {
		return p, fmt.Errorf("preset: tiresias: %w", err)
	}
	if err := p.Validate(); err != nil {
		return p, fmt.Errorf("preset: tiresias: %w", err)
	}
	return p, nil
}

// outcomeOf sums up what the replica says.
func outcomeOf(s *Request, jobs []replica.Job, out []replica.Outcome) *Outcome {
	recs := make([]metrics.Job, len(jobs))
	at := func(sec int64) sched.Time { return sched.Time(sec) * sched.Time(time.Second) }
	end := sched.Time(0)
	for i, o := range out {
		rec := metrics.Job{Name: o.ID, GPUs: int32(jobs[i].GPUs), Submit: at(jobs[i].Submit), Start: sched.None,
			Finish:      sched.None,
			Preemptions: int32(o.Preemptions), Promotions: int32(o.Promotions)}
		if o.Start >= 0 {
			rec.Start = at(o.Start)
		}
		if o.Finished {
			rec.Finish, rec.Outcome = at(o.End), sched.Finished
			// not always the duration: its jobs may end early
			rec.Run = time.Duration(o.End-jobs[i].Submit-o.Pending) * time.Second
			rec.Service = sched.GPUTime(jobs[i].GPUs, rec.Run)
			end = max(end, rec.Finish)
		}
		recs[i] = rec
	}
	sum := &Outcome{Result: metrics.FromJobs(s.System, recs, end), PerJob: recs}
	sum.addUse(s.Cluster.GPUs())
	return sum
}

// addUse adds what follows from the jobs alone: a replica's jobs hold their GPUs only while they work, on a cluster
// that is always up. Of nodes it knows nothing.
func (o *Outcome) addUse(gpus int) {
	var held sched.GPUSeconds
	for i := range o.PerJob {
		held += o.PerJob[i].Service
	}
	o.GPUHours, o.AvgRentedGPUs = float64(held)/3600, float64(gpus)
	if o.Makespan > 0 {
		o.GPUAllocated = float64(held) / (float64(gpus) * o.Makespan)
		o.GPUBusy = o.GPUAllocated
	}
}
