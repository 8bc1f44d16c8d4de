package speedup

import "github.com/trainyard/trainyard/sched"

// Way is one way to run an application. Zero Batch leaves batch size and accumulation to the application.
type Way struct {
	GPUs  int // > 0
	Nodes int // that they are on, 1 <= Nodes <= GPUs
	Batch int // global batch size in samples, all accumulation included
	// micro-batches per update, of Batch/(GPUs*Accum) samples each; 0 = the fewest that the application can do with
	Accum int
}

// App is how fast an application trains. It answers alike for the same questions; it is safe to ask from several
// goroutines.
type App interface {
	// Sizes returns the progress that makes up each phase, > 0, in the application's own unit. The slice is not to be
	// changed.
	Sizes() []float64
	// Speed returns the progress per second of a phase when run so; 0 = it cannot be run so.
	Speed(phase int, w Way) float64
	// Best returns the fastest batch size, and its accumulation, for a phase on so many GPUs and nodes, within limits,
	// and the speed with it, which is that of Speed; speed 0 and no Way = none is possible. Ties go to the smaller
	// batch. Zero limits are none.
	Best(phase, gpus, nodes int, limits sched.BatchRange) (w Way, speed float64)
}

// Chain is what deciding needs of an application: its phases in the order in which they are gone through.
type Chain []Phase

// Phase is a part of the training in which speeds do not change.
type Phase struct {
	Size float64 // progress that makes it up
	Curve
}

// Curve gives, by width from 0, the progress per second on as few nodes as hold that many GPUs, at the best batch size.
// All slices are of equal length or nil; Speed[0] is 0. Nothing is promised about its shape: measured curves fall, jump
// and have holes.
type Curve struct {
	Speed []float64 // 0 = not possible
	Batch []int32   // global batch size; nil, or 0: the job chooses it
	Accum []int16   // micro-batches per update; nil = 1
}

// Source knows how fast jobs go: an oracle, or an estimator.
type Source interface {
	// Chain returns the phases of job j, the one that it is in, and which share of that is done, 0..1. Jobs of equal
	// application and limits share a Chain: it is not to be changed, and lives until the next event. nil = nothing is
	// known.
	Chain(v *sched.View, j sched.JobID) (c Chain, phase int, done float64)
}

// Class is what is known of all jobs of an application together.
type Class struct {
	Model string  // as JobSpec.Model names it
	Rate  float64 // arrivals per second, > 0
	Chain Chain
}
