// Package tiresias is the system of Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning",
// NSDI'19: age-based scheduling without job durations, and placement by model profile.
//
// It decides which jobs run, by discretised two-dimensional attained service with preemption, and where: skewed models
// are consolidated, others take any free GPUs. The number of GPUs of a job is its user's. A job that cannot be placed is
// passed over and preempts nobody.
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

// Placement is the placement by model profile with its default PACKLIMIT.
func Placement() sched.Placer { return place.Skew{Of: skew.Of, Limit: skew.PackLimit} }

// LAS is discretised 2D-LAS. It assumes nothing about jobs but their width.
func LAS(q Queues, p sched.Placer) (pipeline.Stages, error) {
	o, err := order.NewMLFQ(q.Thresholds, q.Seconds, q.Knob, nil)
	return pipeline.Stages{Order: o, Place: p, Preempt: true}, err
}

// Gittins is discretised 2D-Gittins. It assumes the distribution of the service of earlier jobs: sample, or, if that is
// nil, what it learns from the jobs that finish. Delta is the quantum; 0 takes each queue's upper limit.
func Gittins(q Queues, sample *dist.Empirical, delta float64, p sched.Placer) (pipeline.Stages, error) {
	if sample == nil {
		o, err := order.NewLearnedGittins(q.Thresholds, q.Seconds, q.Knob, delta)
		return pipeline.Stages{Order: o, Place: p, Preempt: true}, err
	}
	o, err := order.NewMLFQ(q.Thresholds, q.Seconds, q.Knob, order.NewGittinsIndex(sample, q.Thresholds, delta))
	return pipeline.Stages{Order: o, Place: p, Preempt: true}, err
}
