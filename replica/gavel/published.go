package gavel

import (
	"fmt"
	"math"

	"github.com/trainyard/trainyard/internal/bound"
)

// Defaults of the released scripts.
const (
	DefaultRound = 360  // seconds
	DefaultReset = 1920 // seconds
)

// DefaultMaxRounds is ours: the released simulator never gives up, and a pair of which one does no whole step per GPU
// never ends.
const DefaultMaxRounds = 1 << 20

// Policy says who gets which share of time.
type Policy int

// The policies. FIFO keeps its places until jobs are done; FIFOPerf and FIFOPacked fill the cluster again each time
// shares are computed, the latter pairing those left over; Gandiva shares time evenly, in random pairs if not all fit.
const (
	FIFO Policy = iota
	FIFOPerf
	FIFOPacked
	Gandiva
	policies
)

// String is the name used by the released scripts.
func (p Policy) String() string {
	if p < 0 || p >= policies {
		return fmt.Sprintf("policy %d", int(p))
	}
	return [...]string{"fifo", "fifo_perf", "fifo_packed", "gandiva"}[p]
}

// packs reports whether jobs may share.
func (p Policy) packs() bool { return p == FIFOPacked || p == Gandiva }

// inOrder reports whether a job without a share never runs.
func (p Policy) inOrder() bool { return p != Gandiva }

// Job is one row of a trace.
type Job struct {
	ID     string  // name in the trace; not interpreted
	Submit float64 // seconds, >= 0, no less than that of the job before
	Kind   Kind
	Steps  int64 // > 0
}

// Kind is what throughput depends on.
type Kind struct {
	Model string
	GPUs  int // > 0
}

// Rates are throughputs in steps per second.
type Rates struct {
	Alone map[Kind]float64 // > 0 for each kind of job
	// of the first and the second next to each other, both ways round; missing or 0 = they cannot
	Shared map[[2]Kind][2]float64
}

// Params names a run of the released simulator.
type Params struct {
	Policy Policy
	GPUs   int
	Rates  Rates   // not changed
	Round  float64 // seconds, > 0; 0 means DefaultRound
	Reset  float64 // least seconds between two computations of shares; 0 means DefaultReset
	Seed   uint32  // of Gandiva's pairs

	MaxRounds int // give up after as many, idle waits included; 0 means DefaultMaxRounds
	// Stop is asked before each round; true ends the run there. nil: it goes on to its end.
	Stop func() bool
}

// Outcome is what happened to one job. Times are in seconds on the clock of Job.Submit.
type Outcome struct {
	ID     string
	Finish float64 // NaN if it failed, or had not finished after MaxRounds
	Run    float64 // seconds in rounds
	Shared float64 // of them, next to another
	Failed bool
}

// Result is what happened until all jobs were done.
type Result struct {
	Jobs   []Outcome // in the order of the trace
	AvgJCT float64   // of those that finished
	End    float64   // end of the last round
	Busy   float64   // GPU time held over GPU time since the first submission
	Rounds int
}

// Validate reports the first field of p or of jobs that Run cannot work with.
func (p Params) Validate(jobs []Job) error {
	switch {
	case !bound.Within(p.Policy, 0, policies-1):
		return fmt.Errorf("published: %v is not known, want 0 to %d", p.Policy, policies-1)
	case !bound.Within(p.GPUs, 1, 1<<20):
		return fmt.Errorf("published: %d GPUs, want 1 to %d", p.GPUs, 1<<20)
	case !bound.Within(p.Round, 0, 1e9) || !bound.Within(p.Reset, 0, 1e9):
		return fmt.Errorf("published: round %v s, reset %v s, want 0 (default) to 1e9", p.Round, p.Reset)
	case p.MaxRounds < 0:
		return fmt.Errorf("published: max rounds %d, want 0 (default) or more", p.MaxRounds)
	}
	last := 0.0
	for i := range jobs {
		if err := p.validateJob(&jobs[i], last); err != nil {
			return err
		}
		last = jobs[i].Submit
	}
	return p.validateShared()
}

// validateJob checks a job, the one before which was submitted at last.
func (p Params) validateJob(j *Job, last float64) error {
	rate, known := p.Rates.Alone[j.Kind]
	switch {
	case !bound.Within(j.Submit, last, 1e12):
		return fmt.Errorf("published: job %q: submit %v s, want %v (that of the job before) to 1e12", j.ID, j.Submit,
			last)
	case !bound.Within(j.Kind.GPUs, 1, p.GPUs):
		return fmt.Errorf("published: job %q: gpus %d, want 1 to %d: a wider job never runs", j.ID, j.Kind.GPUs, p.GPUs)
	case !bound.Within(j.Steps, 1, 1<<50):
		return fmt.Errorf("published: job %q: steps %d, want 1 to %d", j.ID, j.Steps, int64(1<<50))
	case !known || !(rate > 0) || math.IsInf(rate, 1):
		return fmt.Errorf("published: job %q: throughput of %q on %d GPUs is %v, want one > 0", j.ID, j.Kind.Model,
			j.Kind.GPUs, rate)
	}
	return nil
}

func (p Params) validateShared() error {
	for kinds, r := range p.Rates.Shared {
		if !(r[0] >= 0) || !(r[1] >= 0) || math.IsInf(r[0]+r[1], 1) || kinds[0].GPUs != kinds[1].GPUs {
			return fmt.Errorf("published: throughputs of %v are %v, want two >= 0 at equal width", kinds, r)
		}
	}
	return nil
}

// stopped reports whether the run is to end.
func (p *Params) stopped() bool { return p.Stop != nil && p.Stop() }
