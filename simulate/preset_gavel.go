package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"github.com/trainyard/trainyard/system/key"
	"math"
	"strconv"

	"github.com/trainyard/trainyard/metrics"
	replica "github.com/trainyard/trainyard/replica/gavel"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// gavelPreset: every system goes through the replica: its rounds, in which jobs take turns, fit no clean stage.
var gavelPreset = map[string]preset{
	"fifo":        {defaults: gavelDefaults, alone: gavelPolicy(replica.FIFO)},
	"fifo-packed": {defaults: gavelDefaults, alone: gavelPolicy(replica.FIFOPacked)},
	"gandiva":     {defaults: gavelDefaults, alone: gavelPolicy(replica.Gandiva)},
}

var gavelDefaults = map[string]string{"restart_overhead": "0", "spread_penalty": "0"}

// gavelPresetKeys are taken by the systems under the preset.
var gavelPresetKeys = key.List{keyReset.Key, keyPerf.Key}

var (
	keyReset = key.Seconds("reset", strconv.Itoa(replica.DefaultReset),
		"gavel: seconds at least between two computations of shares")
	keyPerf = key.Switch("yes", "no", "perf", "no",
		"gavel: yes: fifo fills the cluster from empty each time, fifo_perf")
)

// gavelPolicy runs the replica of the released simulator.
func gavelPolicy(policy replica.Policy) func(*Request, *key.Settings) (replicaRun, error) {
	return func(s *Request, set *key.Settings) (replicaRun, error) {
		p := replica.Params{Policy: policy, GPUs: s.Cluster.GPUs(), Round: s.Round.Seconds(),
			Reset: keyReset.Get(set).Seconds(),
			Seed:  uint32(seedOf(set))}
		if policy == replica.FIFO && keyPerf.Get(set) {
			p.Policy = replica.FIFOPerf
		}
		err := gavelHonours(s, set)
		var jobs []replica.Job
		if err == nil {
			p.Rates = s.Sharing.rates(typeOf(s.Cluster))
			jobs, err = gavelJobs(s, p.Rates)
		}
		if err == nil {
			err = p.Validate(jobs)
		}
		if err != nil {
			return nil, fmt.Errorf("preset: gavel: %w", err)
		}
		return func(stop func() bool) (*Outcome, error) {
			p.Stop = stop
			return gavelOutcome(s, jobs, replica.Run(jobs, p)), nil
		}, nil
	}
}

// gavelHonours refuses what the replica knows nothing of.
func gavelHonours(s *Request, set *key.Settings) error {
	switch {
	case s.Sharing == nil || len(s.Sharing.Pairs) == 0:
		return errors.New("no throughputs of jobs alone and in pairs were given; see --interference")
	case len(s.Cluster.Types) > 1:
		return fmt.Errorf("GPUs of %d types, want one", len(s.Cluster.Types))
	case s.Cluster.Failures.MTBF > 0:
		return fmt.Errorf("nodes that fail every %v, want nodes that never do: the released simulator knows nothing "+
			"of failures", s.Cluster.Failures.MTBF)
	case len(s.Inject) > 0:
		return errors.New("the released simulator takes no events from outside")
	case s.Scores != nil:
		return errors.New("PM scores were given: the released simulator's GPUs do not differ")
	}
	err := wantZero(set, "the released simulator", system.RestartOverhead.Key, system.StartDelay.Key,
		system.StopDelay.Key, system.SpreadPenalty.Key,
		system.MinRun.Key, system.UserLimit.Key, system.InterferenceNoise.Key)
	return cmp.Or(err, wantLocal(set), set.Err())
}

// rates returns the throughputs on a type of GPU.
func (s *Sharing) rates(typ string) replica.Rates {
	r := replica.Rates{Alone: make(map[replica.Kind]float64), Shared: make(map[[2]replica.Kind][2]float64)}
	for i := range s.Pairs {
		p := &s.Pairs[i]
		if p.Type != typ {
			continue
		}
		var kinds [2]replica.Kind
		for k := range kinds {
			kinds[k] = replica.Kind{Model: p.Models[k], GPUs: int(p.Width)}
			r.Alone[kinds[k]] = p.Alone[k]
		}
		r.Shared[kinds] = p.Shared
	}
	return r
}

// gavelJobs turns durations back into the whole steps that the trace counted.
func gavelJobs(s *Request, rates replica.Rates) ([]replica.Job, error) {
	jobs := make([]replica.Job, len(s.Trace.Jobs))
	for i := range s.Trace.Jobs {
		j := &s.Trace.Jobs[i]
		name, err := s.Sharing.kindOf(j)
		if err != nil {
			return nil, err
		}
		kind := replica.Kind{Model: name, GPUs: int(j.Spec.GPUs.Want)}
		rate := rates.Alone[kind]
		if !(rate > 0) {
			return nil, fmt.Errorf("job %s: throughput of %q on %d GPUs is not known, want one > 0", j.Spec.Name, name,
				kind.GPUs)
		}
		step := max(sched.Seconds(1/rate), 1) // as Sharing.Steps has it
		steps := int64(math.Round(j.Duration.Seconds() / step.Seconds()))
		jobs[i] = replica.Job{ID: j.Spec.Name, Submit: j.Spec.Submit.Seconds(), Kind: kind, Steps: max(steps, 1)}
	}
	return jobs, nil
}

// gavelOutcome sums up what the replica says.
func gavelOutcome(s *Request, jobs []replica.Job, res replica.Result) *Outcome {
	recs := make([]metrics.Job, len(jobs))
	at := func(sec float64) sched.Time { return sched.Time(sched.Seconds(sec)) }
	end := sched.Time(0)
	for i, o := range res.Jobs {
		rec := metrics.Job{Name: jobs[i].ID, GPUs: int32(jobs[i].Kind.GPUs), Submit: at(jobs[i].Submit),
			Start: sched.None, Finish: sched.None, Run: sched.Seconds(o.Run)}
		rec.Service = sched.GPUTime(jobs[i].Kind.GPUs, rec.Run)
		if !math.IsNaN(o.Finish) {
			rec.Finish, rec.Outcome = at(o.Finish), sched.Finished
			// when it first ran the released simulator does not say
			rec.Start = max(rec.Finish.Add(-rec.Run), rec.Submit)
			end = max(end, rec.Finish)
		}
		if o.Failed {
			rec.Outcome = sched.Failed
		}
		recs[i] = rec
	}
	sum := &Outcome{Result: metrics.FromJobs(s.System, recs, cmp.Or(end, at(res.End))), PerJob: recs}
	sum.addUse(s.Cluster.GPUs())
	sum.GPUAllocated, sum.GPUBusy = res.Busy, res.Busy // of GPUs that two share each second counts once
	return sum
}
