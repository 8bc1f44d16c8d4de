package system

import (
	"io"

	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system/baseline"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/system/tiresias"
)

// The keys of the systems that are an order of jobs.
var (
	Unit = key.Choice("unit", "gpu-seconds", "what attained service counts: gpu-seconds or seconds", "gpu-seconds", "seconds")

	Thresholds = key.Numbers("thresholds", commas(tiresias.DefaultThresholds),
		"upper limits of the queues but the last, in the unit; empty = one queue")
	PromoteKnob = key.Number("promote_knob", "inf",
		"a waiting job is promoted after waiting so many times as long as it ran; 0 or inf = never")
	Distribution = key.FromFile("distribution", "file with one column headed duration: service of earlier jobs (default: learned)",
		"distribution", "a file with one column headed duration", readSizes)
	Delta = key.Number("delta", "", "static Gittins quantum (default: the upper limit of each queue)")

	keyQuantum = key.Seconds("quantum", "300", "seconds between looks at the order while jobs wait; more than restart_overhead")
	queueKeys  = key.List{Thresholds.Key, PromoteKnob.Key, Unit.Key}
)

func readSizes(data io.Reader, path string, _ key.About) (*dist.Empirical, error) {
	return dist.Read(data, path)
}

// plain is a system of a placement rule alone.
func plain(f func(sched.Placer) pipeline.Stages) func(Knowledge, *key.Settings) (pipeline.Stages, error) {
	return func(_ Knowledge, s *key.Settings) (pipeline.Stages, error) { return f(placer(s)), nil }
}

// knowing is a system that knows the work of jobs.
func knowing(f func(sched.Placer, sched.Remainer) pipeline.Stages) func(Knowledge, *key.Settings) (pipeline.Stages, error) {
	return func(k Knowledge, s *key.Settings) (pipeline.Stages, error) {
		if k.Work == nil {
			return pipeline.Stages{}, errNoWork
		}
		return f(placer(s), k.Work), nil
	}
}

func las(_ Knowledge, s *key.Settings) (pipeline.Stages, error) {
	return baseline.LAS(placer(s), Unit.Get(s) == "seconds", keyQuantum.Get(s)), nil
}

func tiresiasLAS(_ Knowledge, s *key.Settings) (pipeline.Stages, error) {
	return tiresias.LAS(queues(s), placer(s))
}

func tiresiasGittins(_ Knowledge, s *key.Settings) (pipeline.Stages, error) {
	return tiresias.Gittins(queues(s), Distribution.Get(s), Delta.Get(s), placer(s))
}

func queues(s *key.Settings) tiresias.Queues {
	return tiresias.Queues{Thresholds: Thresholds.Get(s), Seconds: Unit.Get(s) == "seconds", Knob: PromoteKnob.Get(s)}
}
