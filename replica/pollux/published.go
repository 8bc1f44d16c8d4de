package pollux

import (
	"fmt"

	"github.com/trainyard/trainyard/internal/bound"
)

// Policy is a scheduler of the released simulator.
type Policy int

// The policies. Tiresias and Optimus were given tuned batch sizes and, Tiresias, tuned widths; Pollux chooses both.
const (
	Tiresias Policy = iota // two queues by attained service, rigid widths
	Optimus                // marginal gains by the true times of steps
	Pollux                 // goodput learnt online, divided by a genetic algorithm
	policies
)

// String is the name used in the released results.
func (p Policy) String() string {
	if p < 0 || p >= policies {
		return fmt.Sprintf("policy %d", int(p))
	}
	return [...]string{"tiresias", "optimus", "pollux"}[p]
}

// Steps knows how long steps take: the truth.
type Steps interface {
	// Placed returns the seconds of an optimizer step, and the part of them spent on synchronisation, with so many
	// samples on each GPU. placement is the number of GPUs on each node. ok is false if nothing is known.
	Placed(placement []int, perGPU int) (step, sync float64, ok bool)
}

// Statistics knows how training advances: the truth. Epochs count from 0.
type Statistics interface {
	// Sizes returns the progress of each epoch, in iterations at the smallest batch size.
	Sizes() []float64
	// Gradient returns the squared norm and the variance of the gradient in an epoch, scaled to the smallest batch
	// size.
	Gradient(epoch, batch int) (sqr, variance float64)
	// Updates returns the iterations done by the end of an epoch with a batch size. Only Optimus asks.
	Updates(epoch, batch int) float64
}

// App is an application.
type App struct {
	Name       string
	Start, Max int // smallest and largest global batch size, in samples
	MinPerGPU  int // samples of a micro-batch on one GPU
	MaxPerGPU  int
	OneGPU     bool // Optimus and Pollux give it one GPU at most, Pollux its largest batch size: ncf, as released
	Steps      Steps
	Statistics Statistics
}

// Job is a row of a workload.
type Job struct {
	Name   string
	App    *App
	Submit int64 // seconds, >= 0
	GPUs   int   // Tiresias: its width
	Batch  int   // Tiresias, Optimus: its global batch size
}

// Defaults of the released simulator.
const (
	DefaultNodes       = 16
	DefaultGPUsPerNode = 4
	DefaultInterval    = 60
	DefaultRestart     = 30
	DefaultMaxRounds   = 1 << 17 // ours: three months of minutes
)

// Params names a run. The zero value is Tiresias as released.
type Params struct {
	Policy       Policy
	Nodes        int     // 0 means DefaultNodes
	GPUsPerNode  int     // 0 means DefaultGPUsPerNode
	Interval     int64   // seconds between decisions, 0 means DefaultInterval
	Interference float64 // share of speed lost by gangs on several nodes that meet on one, 0 <= x < 1
	MaxRounds    int     // give up after so many decisions, 0 means DefaultMaxRounds

	// Pollux only.
	Seed   uint64
	Meet   bool     // lets gangs on several nodes meet on one; as released they avoid it
	Search Search   // zero means as released
	Scale  *Scaling // nil: Nodes stay as they are
	// Stop is asked before each decision; true ends the run there. nil: it goes on to its end.
	Stop func() bool
}

// Search bounds the genetic algorithm.
type Search struct{ Population, Generations int }

// DefaultSearch is the released one.
var DefaultSearch = Search{Population: 100, Generations: 100}

// Scaling lets the number of nodes follow utility, the mean speedup over one GPU for each GPU there is.
type Scaling struct {
	Min, Max  int     // nodes, 1 <= Min <= Max
	Low, High float64 // band in which the mean utility of ScalingIntervals decisions leaves the cluster as it is
}

// Outcome is what happened to one job. Times are in seconds on the clock of Job.Submit.
type Outcome struct {
	Name       string
	Start      int64 // when it first got GPUs; -1 if never
	Finish     int64 // -1 if it did not within MaxRounds
	Waited     int64 // seconds from submission to finish without progress, restarts included
	GPUSeconds int64 // held, restarts included
	Restarts   int   // starts but the first
}

// JCT is the completion time of a finished job.
func (o *Outcome) JCT(j *Job) int64 { return o.Finish - j.Submit }

// Result is what happened.
type Result struct {
	Jobs        []Outcome // in the order of the workload
	Rounds      int       // decisions, or looks at an empty cluster, until the last job was seen to be done
	NodeSeconds int64     // nodes that were there, over time
}

// Validate reports the first field of p or of jobs that Run cannot work with.
func (p Params) Validate(jobs []Job) error {
	p = p.withDefaults()
	switch {
	case !bound.Within(p.Policy, 0, policies-1):
		return fmt.Errorf("published: unknown %v", p.Policy)
	case !bound.Within(p.Nodes, 1, maxNodes) || !bound.Within(p.GPUsPerNode, 1, maxPerNode):
		return fmt.Errorf("published: %d nodes of %d GPUs, want 1..%d of 1..%d", p.Nodes, p.GPUsPerNode, maxNodes,
			maxPerNode)
	case !bound.Within(p.Interval, 1, maxInterval):
		return fmt.Errorf("published: interval %d s, want 1..%d", p.Interval, maxInterval)
	case !(p.Interference >= 0 && p.Interference < 1):
		return fmt.Errorf("published: interference %v, want 0 <= x < 1", p.Interference)
	case p.MaxRounds < 1:
		return fmt.Errorf("published: %d rounds at most, want > 0", p.MaxRounds)
	case p.Search.Population < 2 || p.Search.Generations < 1:
		return fmt.Errorf("published: population %d, %d generations, want at least 2 and 1", p.Search.Population,
			p.Search.Generations)
	}
	if err := p.Scale.validate(p.Nodes); err != nil {
		return err
	}
	if p.Scale != nil && p.Policy != Pollux {
		return fmt.Errorf("published: %v does not scale the cluster, want pollux", p.Policy)
	}
	for i := range jobs {
		if err := p.validateJob(&jobs[i]); err != nil {
			return err
		}
	}
	return nil
}

// Bounds that keep sums inside int64 and memory small.
const (
	maxNodes    = 1024
	maxPerNode  = 16
	maxInterval = 1 << 20
	maxSubmit   = 1 << 40
)

func (s *Scaling) validate(nodes int) error {
	if s == nil {
		return nil
	}
	if s.Min < 1 || s.Max < s.Min || s.Max > maxNodes || nodes < s.Min || nodes > s.Max {
		return fmt.Errorf("published: %d nodes scaled in %d..%d, want 1 <= min <= nodes <= max <= %d", nodes, s.Min,
			s.Max, maxNodes)
	}
	if !(s.Low >= 0 && s.Low <= s.High && s.High <= 1) {
		return fmt.Errorf("published: utility in %v..%v, want 0 <= low <= high <= 1", s.Low, s.High)
	}
	return nil
}

func (p Params) validateJob(j *Job) error {
	a := j.App
	switch {
	case a == nil:
		return fmt.Errorf("published: job %s: no application", j.Name)
	case !bound.Within(j.Submit, 0, maxSubmit):
		return fmt.Errorf("published: job %s: submit %d, want 0..%d", j.Name, j.Submit, int64(maxSubmit))
	case a.Start < 1 || a.Max < a.Start || a.MinPerGPU < 1 || a.MaxPerGPU < a.MinPerGPU || a.MinPerGPU > a.Max:
		return fmt.Errorf("published: application %s: batch %d..%d, per GPU %d..%d, want 1 <= min <= max, min per "+
			"GPU <= max",
			a.Name, a.Start, a.Max, a.MinPerGPU, a.MaxPerGPU)
	case a.Steps == nil || a.Statistics == nil || len(a.Statistics.Sizes()) == 0:
		return fmt.Errorf("published: application %s: no steps, statistics or epochs", a.Name)
	case p.Policy == Tiresias && !bound.Within(j.GPUs, 1, p.Nodes*p.GPUsPerNode):
		return fmt.Errorf("published: job %s: gpus %d, want 1..%d", j.Name, j.GPUs, p.Nodes*p.GPUsPerNode)
	case p.Policy != Pollux && !bound.Within(j.Batch, a.Start, a.Max):
		return fmt.Errorf("published: job %s: batch %d, want %d..%d", j.Name, j.Batch, a.Start, a.Max)
	}
	return nil
}

func (p Params) withDefaults() Params {
	if p.Nodes == 0 {
		p.Nodes = DefaultNodes
	}
	if p.GPUsPerNode == 0 {
		p.GPUsPerNode = DefaultGPUsPerNode
	}
	if p.Interval == 0 {
		p.Interval = DefaultInterval
	}
	if p.MaxRounds == 0 {
		p.MaxRounds = DefaultMaxRounds
	}
	if p.Search == (Search{}) {
		p.Search = DefaultSearch
	}
	return p
}

// stopped reports whether the run is to end.
func (p *Params) stopped() bool { return p.Stop != nil && p.Stop() }
