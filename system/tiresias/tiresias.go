// Package tiresias is the system of Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning",
// NSDI'19: age-based scheduling without job durations, and placement by model profile.
//
// It decides which jobs run, by discretised two-dimensional attained service with preemption, and where: skewed models
// are consolidated, others take any free GPUs. The number of GPUs of a job is its user's. A job that cannot be placed
// is passed over and preempts no job.
package tiresias

import (
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
)

// Queues are the parameters of the multi-level feedback queue.
type Queues struct {
	Thresholds []float64 // K-1 limits, rising, GPU-seconds or seconds; none = one queue
	Seconds    bool      // attained service counts time instead of GPU time
	Knob       float64   // PROMOTEKNOB: promotion when waited >= Knob x executed; +Inf = never
}

// DefaultThresholds are those of the released simulator (K = 3), in GPU-seconds.
var DefaultThresholds = []float64{3250, 7200}

// Known is what is known of jobs.
type Known struct {
	// Sizes is the service of earlier jobs, in the unit of the queues; nil: it is learned from jobs that finish.
	Sizes *dist.Empirical
	// Skew returns the share of a model's largest tensor in all its bytes, and whether the model is known; nil: what
	// was published of nine models.
	Skew func(model string) (float64, bool)
}

// Placement is the placement by model profile: a model whose skew is above the limit is consolidated.
func (k Known) Placement(limit float64) sched.Placer { return place.Skew{Of: k.SkewOf(), Limit: limit} }

// LearnedPlacement is the placement by model profile with a limit that is learned.
func (k Known) LearnedPlacement() sched.Placer { return place.NewLearnedSkew(k.SkewOf()) }

// SkewOf returns what is known of the skew of models.
func (k Known) SkewOf() func(model string) (float64, bool) {
	if k.Skew == nil {
		return skew.Of
	}
	return k.Skew
}

// LAS is discretised 2D-LAS. It assumes nothing about jobs but their width.
func LAS(q Queues, p sched.Placer) (pipeline.Stages, error) {
	o, err := order.NewMLFQ(q.Thresholds, q.Seconds, q.Knob, nil)
	return pipeline.Stages{Order: o, Place: p, Preempt: true}, err
}

// Gittins is discretised 2D-Gittins. It assumes the distribution of the service of earlier jobs, known or learned.
// Delta is the quantum; 0 takes each queue's upper limit.
func Gittins(q Queues, k Known, delta float64, p sched.Placer) (pipeline.Stages, error) {
	if k.Sizes == nil {
		o, err := order.NewLearnedGittins(q.Thresholds, q.Seconds, q.Knob, delta)
		return pipeline.Stages{Order: o, Place: p, Preempt: true}, err
	}
	o, err := order.NewMLFQ(q.Thresholds, q.Seconds, q.Knob, order.NewGittinsIndex(k.Sizes, q.Thresholds, delta))
	return pipeline.Stages{Order: o, Place: p, Preempt: true}, err
}
