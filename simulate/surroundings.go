package simulate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/system/pal"
	"github.com/trainyard/trainyard/trace"
)

// world fills in the jobs, the cluster and the laws by which jobs run on it. It returns the truth about their speeds,
// nil if they have none of their own.
func (s *Request) world(b *built, p preset, info *system.Info, set *key.Settings) (oracle *speedup.Oracle, err error) {
	if b.trace, err = s.prepared(p, info); err != nil {
		return nil, wrong("Trace", err)
	}
	oracle = s.oracle(b.trace)
	err = errors.Join(measure(b.trace, oracle), s.checkFiles(set), s.Caps.within(b.trace, set.Text(&system.Caps.Key)))
	if err != nil {
		return nil, err
	}
	b.runtime = s.runtimeOf(set, skewOf(set))
	goBy(oracle, &b.runtime)
	s.byType(oracle, &b.runtime)
	s.mute(&b.runtime)
	s.Recorded.pace(&b.runtime)
	s.Caps.slow(&b.runtime)
	if s.Sharing == nil {
		return oracle, nil
	}
	b.cluster, _ = s.Sharing.on(s.Cluster)
	sets, err := s.Sharing.sets(b.cluster)
	if err == nil {
		err = interfere(sets, b.cluster, system.InterferenceNoise.Get(set), uint64(system.InterferenceSeed.Get(set)),
			&b.runtime)
	}
	return oracle, err
}

// pace has jobs be as fast as they were seen to be.
func (a *Recorded) pace(r *sim.Runtime) {
	r.Interference = a.Slow
	if a.Speed == nil || r.Speed != nil {
		return
	}
	r.Speed = func(j *trace.Job, _ sched.Config, placement []int, _ time.Duration) (rate float64, until time.Duration) {
		gpus := 0
		for _, n := range placement {
			gpus += n
		}
		return a.Speed(j, gpus), 0
	}
}

// mute has the ends of epochs be unknown of the jobs that say nothing of them.
func (s *Request) mute(r *sim.Runtime) {
	if s.Recorded.Mute == nil {
		return
	}
	ends := r.EpochEnd
	r.EpochEnd = func(j *trace.Job, epoch int) time.Duration {
		if s.Recorded.Mute(j) {
			return math.MaxInt64
		}
		return ends(j, epoch)
	}
}

// checkFiles refuses keys that name a file whose contents were not given with them, and those that do nothing without
// reports.
func (s *Request) checkFiles(set *key.Settings) error {
	silent := system.ReportInterval.Get(set) == 0 && set.Err() == nil
	switch err := RuntimeKeys.Held(s.Settings, s.Files); {
	case err != nil:
		return fmt.Errorf("system: %w", err)
	case set.Text(&system.Stragglers.Key) == "watch" && silent:
		return errors.New("system: stragglers=watch learns from reports, and there are none; " +
			"set report_interval, " +
			"such as 60")
	case system.ReportNoise.Get(set) > 0 && silent:
		return errors.New("system: report_noise is that of reports, and there are none; " +
			"set report_interval, such as 60")
	}
	return nil
}

// skewOf returns what is known of models: what was given, else what was published.
func skewOf(set *key.Settings) func(model string) (float64, bool) {
	if system.Profiles.Taken(set) {
		if of := system.Profiles.Get(set); of != nil {
			return of
		}
	}
	return skew.Of
}

// runtimeOf returns the laws by which jobs run.
func (s *Request) runtimeOf(set *key.Settings, skewOf func(string) (float64, bool)) sim.Runtime {
	r := sim.Runtime{
		StartDelay: system.StartDelay.Get(set),
		StopDelay:  system.StopDelay.Get(set),
		Boot:       system.BootDelay.Get(set),
		Checkpoint: system.CheckpointInterval.Get(set),
	}
	r.Changes, r.Seed = disturbances(system.SlowGPUs.Get(set)), s.NoiseSeed
	r.Report, r.Noise = system.ReportInterval.Get(set), system.ReportNoise.Get(set)
	restart := system.RestartOverhead.Get(set)
	r.Restart, r.RestartAtFirst = restart.Longest(), system.RestartAtFirst.Get(set)
	if len(restart.Models) > 0 {
		r.RestartOf = func(j *trace.Job) time.Duration { return restart.Of(j.Spec.Model) }
	}
	if s.Recorded.StartUp != nil {
		r.RestartOf, r.RestartAtFirst = s.Recorded.StartUp, true
	}
	penalty, w := system.SpreadPenalty.Get(set), s.truth(set)
	r.Slowdown = func(v *sched.View, t *trace.Job, gpus []sched.GPUID, nodes, need int) float64 {
		x := w.slowdown(v, t, gpus)
		if nodes > need && t.Spec.Model != "" {
			f, _ := skewOf(t.Spec.Model)
			x *= 1 + penalty*f
		}
		return x
	}
	return r
}

// truth is the world in which jobs run.
func (s *Request) truth(set *key.Settings) *truth {
	w := &truth{scores: s.Scores}
	if s.Scores != nil {
		w.class = pal.Class(s.Scores.Classes, system.Classes.Get(set))
	}
	across, table := system.LocalityPenalty.Get(set), system.Locality.Get(set)
	if table != nil {
		w.locality = table.OrElse(across)
	} else {
		w.locality = variability.TwoLevel(across)
	}
	return w
}

// prepared returns the trace with GPU types resolved, with the demands a preset adds and without the widths and batch
// sizes that the system is to choose; the trace itself if nothing changes. Durations of a Profiled trace are yet to be
// measured.
func (s *Request) prepared(p preset, info *system.Info) (*trace.Trace, error) {
	typed, err := s.typed()
	if err != nil {
		return nil, err
	}
	if !typed && p.demand == nil && !info.Batches && !s.Trace.Profiled && s.Sharing == nil {
		return s.Trace, nil
	}
	memGB := float32(0)
	if s.Sharing != nil {
		_, memGB = s.Sharing.on(s.Cluster)
	}
	t := *s.Trace
	t.Jobs = slices.Clone(s.Trace.Jobs)
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if err := s.resolve(j); err != nil {
			return nil, err
		}
		if s.Sharing != nil {
			if err := s.Sharing.describe(j, memGB); err != nil {
				return nil, err
			}
		}
		if p.demand != nil {
			p.demand(&j.Spec, s.Cluster)
		}
		if info.Batches && s.Trace.Profiled {
			j.Spec.Batch, j.Spec.GPUs.Want = sched.BatchRange{}, j.Spec.GPUs.Min
		}
	}
	return &t, nil
}

// typed reports whether a job names a GPU type, and refuses jobs that are late when they are submitted.
func (s *Request) typed() (typed bool, _ error) {
	for i := range s.Trace.Jobs {
		typed = typed || s.Trace.Jobs[i].GPUType != ""
		if spec := &s.Trace.Jobs[i].Spec; spec.Deadline > 0 && spec.Deadline <= spec.Submit {
			return false, fmt.Errorf("trace: %s: job %s: deadline %v, submitted at %v, want a later deadline",
				s.Trace.Path, spec.Name, spec.Deadline, spec.Submit)
		}
	}
	return typed, nil
}

// resolve finds the GPU type that a job names among those of the cluster.
func (s *Request) resolve(j *trace.Job) error {
	if j.GPUType == "" || slices.Equal(s.Cluster.Types, []string{"gpu"}) {
		return nil
	}
	id := slices.Index(s.Cluster.Types, j.GPUType)
	if id < 0 {
		return fmt.Errorf("trace: %s: job %s wants GPU type %q, the cluster has %s", s.Trace.Path, j.Spec.Name,
			j.GPUType,
			strings.Join(s.Cluster.Types, ", "))
	}
	j.Spec.Types = sched.TypeSet(0).With(sched.TypeID(id))
	return nil
}
