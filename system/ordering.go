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
	Unit = key.Choice("unit", "gpu-seconds", "what attained service counts: gpu-seconds or seconds", "gpu-seconds",
		"seconds")

	Thresholds = key.Numbers("thresholds", commas(tiresias.DefaultThresholds),
		"upper limits of the queues but the last, in the unit; empty = one queue")
	PromoteKnob = key.Number("promote_knob", "inf",
		"a waiting job is promoted after waiting so many times as long as it ran; 0 or inf = never")
	Distribution = key.FromFile("distribution",
		"file with one column headed duration: service of earlier jobs (default: learned)",
		"distribution", "a file with one column headed duration", readSizes)
	Delta = key.Number("delta", "", "static Gittins quantum (default: the upper limit of each queue)")

	keyQuantum = key.Seconds("quantum", "300",
		"seconds between looks at the order while jobs wait; more than restart_overhead")
	queueKeys = key.List{Thresholds.Key, PromoteKnob.Key, Unit.Key}
)

func readSizes(data io.Reader, path string, _ key.About) (*dist.Empirical, error) {
	return dist.Read(data, path)
}

// work is what a system knows that plans by the work of jobs.
func work(k Knowledge, _ *key.Settings) (baseline.Known, error) {
	if k.Work == nil {
		return baseline.Known{}, errNoWork
	}
	return baseline.Known{Work: k.Work}, nil
}

// plain is a system of a placement rule alone.
func plain(f func(sched.Placer) pipeline.Stages) Maker[pipeline.Stages] {
	return unaware(func(s *key.Settings) (pipeline.Stages, error) { return f(placer(s)), nil })
}

// knowing is a system that knows the work of jobs.
func knowing(f func(sched.Placer, baseline.Known) pipeline.Stages) Maker[pipeline.Stages] {
	return given(work, func(k baseline.Known, _ Facts, s *key.Settings) (pipeline.Stages,
		error) {
		return f(placer(s), k), nil
	})
}

func las(s *key.Settings) (pipeline.Stages, error) {
	return baseline.LAS(placer(s), Unit.Get(s) == "seconds", keyQuantum.Get(s)), nil
}

func tiresiasLAS(s *key.Settings) (pipeline.Stages, error) { return tiresias.LAS(queues(s), placer(s)) }

// sizes is what Tiresias-G knows.
func sizes(_ Knowledge, s *key.Settings) (tiresias.Known, error) {
	return tiresias.Known{Sizes: Distribution.Get(s)}, nil
}

func tiresiasGittins(k tiresias.Known, _ Facts, s *key.Settings) (pipeline.Stages, error) {
	return tiresias.Gittins(queues(s), k, Delta.Get(s), placer(s))
}

func queues(s *key.Settings) tiresias.Queues {
	return tiresias.Queues{Thresholds: Thresholds.Get(s), Seconds: Unit.Get(s) == "seconds", Knob: PromoteKnob.Get(s)}
}
