package pal

import (
	"fmt"
	"math"
	"slices"

	"github.com/trainyard/trainyard/internal/bound"
)

// Defaults of the released scripts, except DefaultMaxRounds, which is ours.
const (
	DefaultGPUsPerNode = 4
	DefaultSeed        = 42
	DefaultMaxRounds   = 1 << 20
)

// Bounds that keep all sums inside int64.
const (
	maxSeconds = 1 << 40
	maxRound   = 1 << 20
	maxRounds  = 1 << 40
	maxGPUs    = 1 << 20
	maxPerNode = 64
)

// Policy says which GPUs a job gets.
type Policy int

// The placements of the released simulator. Sticky ones let running jobs keep their GPUs; the others, PAL and PMFirst
// among them, place all jobs again in each round.
const (
	PAL Policy = iota
	PMFirst
	PackedSticky
	PackedNonSticky
	RandomSticky
	RandomNonSticky
	policies
)

func (p Policy) sticky() bool { return p == PackedSticky || p == RandomSticky }

func (p Policy) random() bool { return p == RandomSticky || p == RandomNonSticky }

func (p Policy) scored() bool { return p == PAL || p == PMFirst }

// String is the name used in the released results.
func (p Policy) String() string {
	if p < 0 || p >= policies {
		return fmt.Sprintf("policy %d", int(p))
	}
	return [...]string{"PAL", "PMFirst", "Default-Packed-S", "Default-Packed-NS", "Default-Random-S",
		"Default-Random-NS"}[p]
}

// Order says who comes first. Ties keep the order of arrival.
type Order int

// The orders of the released simulator. Its class "Tiresias" equals LAS.
const (
	FIFO Order = iota // submit time
	LAS               // seconds run so far, whatever the width
	SRTF              // seconds of the whole job at nominal speed, less seconds run so far; may be negative
	orders
)

// String is the name used in the paper.
func (o Order) String() string {
	if o < 0 || o >= orders {
		return fmt.Sprintf("order %d", int(o))
	}
	return [...]string{"FIFO", "LAS", "SRTF"}[o]
}

// Job is one row of a trace.
type Job struct {
	ID         string  // name in the trace; not interpreted
	Submit     int64   // seconds, >= 0, no less than that of the job before
	GPUs       int     // gang size, > 0
	Iterations float64 // the trace's "duration", > 0
	Model      string  // one of Models
}

// Scores holds one number per class and GPU; 1 is the median, larger is slower. Lists must not change during Run.
type Scores [Classes][]float64

// Params names a run of the released simulator. GPU g stands in node g/GPUsPerNode.
type Params struct {
	Policy      Policy
	Order       Order
	Round       int64   // length of a round, seconds, > 0; 300 and 360 are released
	Locality    float64 // iteration time of a job on several nodes over that on one, >= 1; 1.7 is released
	GPUsPerNode int     // 1 to 64, a divisor of the number of GPUs; 0 means DefaultGPUsPerNode
	PM          Scores  // raw scores, > 0; progress follows them
	SF          Scores  // binned scores, > 0, equal inside a bin; PAL and PMFirst decide by them
	Wrap        bool    // after its last job the trace is issued again, for ever, as in the released simulator
	Tracked     int     // the run ends when the first Tracked jobs are done; 0 means all jobs of the trace
	// give up after as many rounds, as LAS or SRTF with Wrap may never end; 0 means DefaultMaxRounds
	MaxRounds int64

	// Random placements only: the generator's seed, 0 for DefaultSeed, and how many rows each class's file had when the
	// same generator drew PM (see Draw); all zero if nothing was drawn.
	Seed uint32
	Rows [Classes]int
	// Stop is asked before each boundary; true ends the run there. nil: it goes on to its end.
	Stop func() bool
}

// Outcome is what happened to one job. Times are in seconds on the clock of Job.Submit.
type Outcome struct {
	ID          string
	Start       int64 // first start; -1 if it never started
	Finish      int64 // completion, the end of a round; -1 if it did not finish within MaxRounds
	Run         int64 // seconds it held GPUs
	Preemptions int   // running → waiting
	Moves       int   // times it got other GPUs than it had last
	Finished    bool
}

// Result is what happened until all tracked jobs were done.
type Result struct {
	Jobs      []Outcome // of the tracked jobs, in the order of the trace
	Rounds    int64     // from second 0 to the last completion
	BusyShare float64   // GPUs held, repeated jobs among the holders, over all GPUs, averaged over those rounds
	Admitted  int       // jobs that arrived, tracked or not, repeated ones among them
}

// Validate reports the first field of p or of jobs that Run cannot work with.
func (p Params) Validate(jobs []Job) error {
	switch {
	case !bound.Within(p.Policy, 0, policies-1):
		return fmt.Errorf("published: %v is not known, want 0 to %d", p.Policy, policies-1)
	case !bound.Within(p.Order, 0, orders-1):
		return fmt.Errorf("published: %v is not known, want 0 to %d", p.Order, orders-1)
	case !bound.Within(p.Round, 1, maxRound):
		return fmt.Errorf("published: round %d s, want 1 to %d", p.Round, maxRound)
	case !bound.Within(p.Locality, 1, math.MaxFloat64):
		return fmt.Errorf("published: locality penalty %v, want >= 1", p.Locality)
	case !bound.Within(p.GPUsPerNode, 0, maxPerNode):
		return fmt.Errorf("published: gpus per node %d, want 0 (default) to %d", p.GPUsPerNode, maxPerNode)
	case !bound.Within(p.Tracked, 0, len(jobs)):
		return fmt.Errorf("published: tracked %d, want 0 (all) to %d", p.Tracked, len(jobs))
	case !bound.Within(p.MaxRounds, 0, maxRounds):
		return fmt.Errorf("published: max rounds %d, want 0 (default) to %d", p.MaxRounds, maxRounds)
	case slices.Min(p.Rows[:]) < 0 || slices.Max(p.Rows[:]) > math.MaxInt32:
		return fmt.Errorf("published: rows %d, want 0 to %d", p.Rows, math.MaxInt32)
	}
	if err := p.validateScores(); err != nil {
		return err
	}
	return p.validateJobs(jobs)
}

func (p Params) validateScores() error {
	gpus, per := p.gpus(), p.perNode()
	if gpus == 0 || gpus > maxGPUs || gpus%per != 0 {
		return fmt.Errorf("published: %d GPUs, want a multiple of %d up to %d", gpus, per, maxGPUs)
	}
	for c := range Classes {
		if err := validateList("PM", c, p.PM[c], gpus); err != nil {
			return err
		}
		if !p.Policy.scored() && p.SF[c] == nil {
			continue
		}
		if err := validateList("SF", c, p.SF[c], gpus); err != nil {
			return err
		}
	}
	return nil
}

func validateList(name string, class int, scores []float64, gpus int) error {
	if len(scores) != gpus {
		return fmt.Errorf("published: %s of class %c: %d scores, want %d", name, 'A'+class, len(scores), gpus)
	}
	for g, s := range scores {
		if !(s > 0) || math.IsInf(s, 1) {
			return fmt.Errorf("published: %s of class %c: GPU %d: score %v, want > 0", name, 'A'+class, g, s)
		}
	}
	return nil
}

func (p Params) validateJobs(jobs []Job) error {
	last := int64(0)
	for _, j := range jobs {
		switch {
		case j.Submit < last || j.Submit > maxSeconds:
			return fmt.Errorf("published: job %q: submit %d s, want %d (that of the job before) to %d", j.ID, j.Submit,
				last, maxSeconds)
		case j.GPUs <= 0 || j.GPUs > p.gpus():
			return fmt.Errorf("published: job %q: gpus %d, want 1 to %d: a wider job blocks those behind it for ever",
				j.ID, j.GPUs, p.gpus())
		case !(j.Iterations > 0) || math.IsInf(j.Iterations, 1):
			return fmt.Errorf("published: job %q: iterations %v, want > 0", j.ID, j.Iterations)
		case modelOf(j.Model) == nil:
			return fmt.Errorf("published: job %q: model %q is not known", j.ID, j.Model)
		}
		last = j.Submit
	}
	return nil
}

func (p Params) gpus() int { return len(p.PM[0]) }

func (p Params) perNode() int {
	if p.GPUsPerNode == 0 {
		return DefaultGPUsPerNode
	}
	return p.GPUsPerNode
}

// stopped reports whether the run is to end.
func (p *Params) stopped() bool { return p.Stop != nil && p.Stop() }
