// Package baseline holds the schedulers everybody compares with. Each is a value that lists its stages; what it assumes
// is in its arguments.
package baseline

import (
	"time"

	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/admit"
	"github.com/trainyard/trainyard/stage/order"
)

// Known is what is known of jobs.
type Known struct {
	Work sched.Remainer // what they have left to do
}

// FIFO starts jobs by priority and arrival; the first that does not fit holds up all behind it.
func FIFO(place sched.Placer) pipeline.Stages {
	return pipeline.Stages{Order: order.FIFO{}, Admit: admit.Stop{}, Place: place}
}

// FIFOSkip starts jobs by priority and arrival and passes over those that do not fit, without reservation: a wide job
// may wait for ever.
func FIFOSkip(place sched.Placer) pipeline.Stages {
	return pipeline.Stages{Order: order.FIFO{}, Place: place}
}

// FIFOEasy starts jobs by priority and arrival; the first that does not fit gets a reservation which those that start
// before it must not delay. It assumes an estimate of every job's work.
func FIFOEasy(place sched.Placer, k Known) pipeline.Stages {
	return pipeline.Stages{Order: order.FIFO{}, Admit: &admit.Easy{Work: k.Work, Place: place}, Place: place}
}

// SJF starts the shortest jobs first and preempts no job; the first that does not fit holds up all behind it. It
// assumes an estimate of every job's work.
func SJF(place sched.Placer, k Known) pipeline.Stages {
	return pipeline.Stages{Order: order.SJF{Work: k.Work}, Admit: admit.Stop{}, Place: place}
}

// SRTF runs the jobs with the shortest remaining time, preempting others. It assumes an estimate of it.
func SRTF(place sched.Placer, k Known) pipeline.Stages {
	return Preempting(order.SRTF{Work: k.Work})(place)
}

// SRSF runs the jobs with the least remaining service, time times GPUs, preempting others. It assumes an estimate of
// the remaining time.
func SRSF(place sched.Placer, k Known) pipeline.Stages {
	return Preempting(order.SRSF{Work: k.Work})(place)
}

// Preempting runs the jobs that come first in an order, preempting others.
func Preempting(o sched.Orderer) func(place sched.Placer) pipeline.Stages {
	return func(place sched.Placer) pipeline.Stages {
		return pipeline.Stages{Order: o, Place: place, Preempt: true}
	}
}

// LAS runs the jobs of least attained service, GPU time or time, and looks at the order again every quantum. It assumes
// nothing. Source: Gu et al., NSDI'19, continuous 2D-LAS.
func LAS(place sched.Placer, seconds bool, quantum time.Duration) pipeline.Stages {
	return pipeline.Stages{Order: order.LAS{Seconds: seconds}, Place: place, Preempt: true, Quantum: quantum}
}
