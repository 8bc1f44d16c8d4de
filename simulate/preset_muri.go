package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/metrics"
	replica "github.com/trainyard/trainyard/replica/muri"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

// muriPreset: every system goes through the replica, for a pass of the released loop costs every running job progress,
// and moves jobs for nothing, which fits no clean stage.
var muriPreset = map[string]preset{
	"srtf":         {defaults: muriYarn, alone: muriSchedule(replica.SRTF)},
	"srsf":         {defaults: muriYarn, alone: muriSchedule(replica.SRSF)},
	"tiresias-las": {defaults: counted, alone: muriSchedule(replica.Tiresias)},
}

// muriYarn is the placement of the released simulator's schedules but for Tiresias, which counts.
var muriYarn = map[string]string{"placement": "yarn", "restart_overhead": "0", "spread_penalty": "0"}

// muriSchedule runs the replica of the released simulator.
func muriSchedule(policy replica.Policy) func(*Request, *key.Settings) (replicaRun, error) {
	return func(s *Request, set *key.Settings) (replicaRun, error) {
		p := replica.Params{Policy: policy, Nodes: len(s.Cluster.Nodes)}
		err := muriHonours(s, set, policy)
		var jobs []replica.Job
		if err == nil {
			jobs, err = muriJobs(s.Trace)
		}
		if err == nil {
			p.NodeGPUs = s.Cluster.Nodes[0].GPUs
			err = p.Validate(jobs)
		}
		if err != nil {
			return nil, fmt.Errorf("preset: muri: %w", err)
		}
		return func(stop func() bool) (*Outcome, error) {
			p.Stop = stop
			return muriOutcome(s, jobs, replica.Run(jobs, p)), nil
		}, nil
	}
}

// muriHonours refuses what the replica knows nothing of.
func muriHonours(s *Request, set *key.Settings, policy replica.Policy) error {
	for i := range s.Cluster.Nodes {
		if n := &s.Cluster.Nodes[i]; n.GPUs != s.Cluster.Nodes[0].GPUs || n.Type != s.Cluster.Nodes[0].Type {
			return fmt.Errorf("node %s has %d GPUs of type %d, want all nodes alike: the released simulator knows no "+
				"others", n.Name, n.GPUs, n.Type)
		}
	}
	switch {
	case len(s.Cluster.Nodes) == 0:
		return errors.New("no nodes, want some")
	case s.Cluster.Failures.MTBF > 0:
		return fmt.Errorf("nodes that fail every %v, want nodes that never do: the released simulator knows nothing "+
			"of failures", s.Cluster.Failures.MTBF)
	case len(s.Inject) > 0:
		return errors.New("the released simulator takes no events from outside")
	case s.Round > 0:
		return errors.New("the released simulator has no rounds")
	case s.Scores != nil:
		return errors.New("PM scores were given: the released simulator's GPUs do not differ")
	}
	err := cmp.Or(wantLocal(set), wantZero(set, "the released simulator", system.RestartOverhead.Key,
		system.StartDelay.Key, system.StopDelay.Key,
		system.SpreadPenalty.Key, system.MinRun.Key, system.UserLimit.Key))
	if err != nil {
		return err
	}
	if policy != replica.Tiresias {
		wantWord(set, system.Placement, "yarn")
		return set.Err()
	}
	wantWord(set, system.Placement, "count")
	wantWord(set, system.Unit, "gpu-seconds")
	if knob := system.PromoteKnob.Get(set); !math.IsInf(knob, 1) {
		return fmt.Errorf("promote_knob=%v, want none: the released simulator never promotes", knob)
	}
	if got := system.Thresholds.Get(set); system.Thresholds.Given(set) && !slices.Equal(got, replica.Limits[:]) {
		return fmt.Errorf("thresholds %v, want %v: the released simulator has no others", got, replica.Limits)
	}
	return set.Err()
}

// muriJobs gives each job of the trace the work and the overhead of its model at its width.
func muriJobs(t *trace.Trace) ([]replica.Job, error) {
	jobs := make([]replica.Job, len(t.Jobs))
	for i := range t.Jobs {
		j := &t.Jobs[i]
		profile, known := replica.ProfileOf(j.Spec.Model)
		w := slices.Index(replica.Widths[:], int(j.Spec.GPUs.Want))
		switch {
		case !known:
			return nil, fmt.Errorf("job %s: model %q, want one that is profiled, such as %s", j.Spec.Name, j.Spec.Model,
				replica.Profiles[0].Model)
		case w < 0:
			return nil, fmt.Errorf("job %s: %d GPUs, want one of the widths profiled, %v", j.Spec.Name,
				j.Spec.GPUs.Want, replica.Widths)
		}
		jobs[i] = replica.Job{ID: j.Spec.Name, GPUs: replica.Widths[w], Submit: time.Duration(j.Spec.Submit).Seconds()}
		jobs[i].Iterations, jobs[i].Iteration, jobs[i].Overhead = profile.Work(j.Duration.Seconds(), w)
	}
	return jobs, nil
}

// muriOutcome sums up what the replica says.
func muriOutcome(s *Request, jobs []replica.Job, out []replica.Outcome) *Outcome {
	recs := make([]metrics.Job, len(jobs))
	at := func(sec float64) sched.Time { return sched.Time(sched.Seconds(sec)) }
	end := sched.Time(0)
	for i, o := range out {
		rec := metrics.Job{Name: jobs[i].ID, GPUs: int32(jobs[i].GPUs), Submit: at(jobs[i].Submit), Start: sched.None,
			Finish: sched.None,
			Run:    sched.Seconds(o.Run), Preemptions: int32(o.Preemptions)}
		rec.Service = sched.GPUTime(jobs[i].GPUs, rec.Run)
		if o.Started {
			rec.Start = at(o.Start)
		}
		if o.Finished {
			rec.Finish, rec.Outcome = at(o.Finish), sched.Finished
			end = max(end, rec.Finish)
		}
		recs[i] = rec
	}
	sum := &Outcome{Result: metrics.FromJobs(s.System, recs, end), PerJob: recs}
	sum.addUse(s.Cluster.GPUs())
	return sum
}
