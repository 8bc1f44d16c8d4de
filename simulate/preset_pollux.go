package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/speedup"
	replica "github.com/trainyard/trainyard/replica/pollux"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

// polluxPreset: every system goes through the replica, for epochs that end at whole seconds, batch sizes chosen again
// at no cost, and a clock that jumps a minute fit no clean stage.
var polluxPreset = map[string]preset{
	"tiresias-las": {defaults: polluxTiresias, alone: polluxPolicy(replica.Tiresias)},
	"optimus":      {defaults: polluxDefaults, alone: polluxPolicy(replica.Optimus)},
	"pollux":       {defaults: polluxDefaults, alone: polluxPolicy(replica.Pollux)},
}

var (
	polluxDefaults = map[string]string{"restart_overhead": "30", "restart_at_first": "yes", "spread_penalty": "0"}
	polluxTiresias = map[string]string{"restart_overhead": "30", "restart_at_first": "yes", "spread_penalty": "0",
		"placement": "count"}
)

// polluxPolicy runs the replica of the released simulator.
func polluxPolicy(policy replica.Policy) func(*Request, *key.Settings) (replicaRun, error) {
	return func(s *Request, set *key.Settings) (replicaRun, error) {
		p := replica.Params{Policy: policy, Nodes: len(s.Cluster.Nodes),
			Interval: int64(cmp.Or(s.Round, time.Minute) / time.Second),
			Seed:     seedOf(set)}
		err := polluxHonours(s, set)
		var jobs []replica.Job
		if err == nil {
			p.GPUsPerNode = s.Cluster.Nodes[0].GPUs
			jobs, err = polluxJobs(s.Trace, s.Apps)
		}
		if err == nil {
			err = p.Validate(jobs)
		}
		if err != nil {
			return nil, fmt.Errorf("preset: pollux: %w", err)
		}
		return func(stop func() bool) (*Outcome, error) {
			p.Stop = stop
			res, err := replica.Run(jobs, p)
			if err != nil {
				return nil, fmt.Errorf("preset: pollux: %w", err)
			}
			return polluxOutcome(s, jobs, res), nil
		}, nil
	}
}

// polluxHonours refuses what the replica knows nothing of.
func polluxHonours(s *Request, set *key.Settings) error {
	if err := plainWorld(s); err != nil {
		return err
	}
	if s.Scores != nil {
		return errors.New("PM scores of GPUs, want none: GPUs of the released simulator do not differ")
	}
	err := wantZero(set, "the released simulator", system.StartDelay.Key, system.StopDelay.Key,
		system.SpreadPenalty.Key, system.MinRun.Key, system.UserLimit.Key)
	if err != nil {
		return err
	}
	if x := system.RestartOverhead.Get(set); len(x.Models) > 0 || x.Others != replica.DefaultRestart*time.Second {
		return fmt.Errorf("restart_overhead=%s, want %d: the released simulator charges that at every start",
			set.Text(&system.RestartOverhead.Key), replica.DefaultRestart)
	}
	own := []string{"curves", system.Batch.Name, system.LR.Name, system.KMax.Name, system.Horizon.Name,
		system.Interval.Name,
		system.Thresholds.Name, system.PromoteKnob.Name, system.Unit.Name}
	for _, name := range own {
		if set.Has(name) {
			return fmt.Errorf("%s=%s, want it left out: the released simulator has its own", name, s.Settings[name])
		}
	}
	return set.Err()
}

// polluxJobs joins the workload and the profiles of its applications.
func polluxJobs(t *trace.Trace, apps map[string]speedup.App) ([]replica.Job, error) {
	known := make(map[string]*replica.App)
	jobs := make([]replica.Job, len(t.Jobs))
	for i := range t.Jobs {
		spec := &t.Jobs[i].Spec
		profile, ok := apps[spec.Model].(*speedup.Profile)
		submit := time.Duration(spec.Submit)
		switch {
		case !ok:
			return nil, fmt.Errorf("job %s: application %q, want one that --profiles has as Pollux measured it",
				spec.Name, spec.Model)
		case submit%time.Second != 0:
			return nil, fmt.Errorf("job %s: submit %v, want whole seconds", spec.Name, submit)
		}
		if known[spec.Model] == nil {
			known[spec.Model] = polluxApp(profile)
		}
		jobs[i] = replica.Job{Name: spec.Name, App: known[spec.Model], Submit: int64(submit / time.Second),
			GPUs:  int(spec.GPUs.Want),
			Batch: int(spec.Batch.Max)}
	}
	return jobs, nil
}

// oneGPU is the application that the released simulator keeps on one GPU.
const oneGPU = "ncf"

func polluxApp(p *speedup.Profile) *replica.App {
	l := p.Limits
	return &replica.App{Name: p.Name, Start: l.Start, Max: l.Max, MinPerGPU: l.MinPerGPU, MaxPerGPU: l.MaxPerGPU,
		OneGPU: p.Name == oneGPU,
		Steps:  replica.Triangulate(p.Steps), Statistics: p.Validation}
}

// polluxOutcome sums up what the replica says. Time without progress counts as time in the queue, restarts included, as
// released.
func polluxOutcome(s *Request, jobs []replica.Job, res replica.Result) *Outcome {
	recs := make([]metrics.Job, len(res.Jobs))
	at := func(sec int64) sched.Time { return sched.Time(sec) * sched.Time(time.Second) }
	end := sched.Time(0)
	for i := range res.Jobs {
		o := &res.Jobs[i]
		rec := metrics.Job{Name: o.Name, GPUs: int32(jobs[i].GPUs), Submit: at(jobs[i].Submit), Start: sched.None,
			Finish:  sched.None,
			Service: sched.GPUSeconds(o.GPUSeconds), Resizes: int32(o.Restarts)}
		if o.Start >= 0 {
			rec.Start = at(o.Start)
		}
		if o.Finish >= 0 {
			rec.Finish, rec.Outcome = at(o.Finish), sched.Finished
			rec.Run = time.Duration(o.JCT(&jobs[i])-o.Waited) * time.Second
			end = max(end, rec.Finish)
		}
		recs[i] = rec
	}
	sum := &Outcome{Result: metrics.FromJobs(s.System, recs, end), PerJob: recs}
	sum.addUse(s.Cluster.GPUs())
	return sum
}
