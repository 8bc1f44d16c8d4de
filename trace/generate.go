package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/internal/bound"
)

// Generator says what kind of trace is made. The same Generator makes the same jobs on every run, and one that differs
// in Jobs alone the same first ones, unless Span or, with a Profile, Load has the rate depend on Jobs. Like returns
// those that resemble known clusters.
type Generator struct {
	Seed uint64
	Jobs int // > 0
	// how the rate of arrivals goes up and down; nil = it does not: a Poisson process from time 0 on
	Profile *Profile
	// work arriving per second over what GPUs can do, > 0; 1 keeps the cluster just busy; 0 = the profile's rate
	Load    float64
	GPUs    int           // size of the cluster that Load refers to, > 0 with a Load
	Span    time.Duration // with a Profile and no Load: the jobs come over about so long; 0 = at the profile's rate
	Mix     []Width       // widths of jobs; empty = all jobs have one GPU
	Repeat  float64       // probability that a job has width and duration, within 10 %, of the one before it; 0 to 1
	Models  []string      // names given to jobs, evenly; empty = unknown
	Users   int           // users named u0, u1, ...; 0 = unknown
	UserLaw Mandelbrot
	Groups  []Named // groups that submit, by their weight; empty = unknown
	States  []State // how jobs end; empty = unknown

	Durations Law           // of widths without a law of their own; nil = Philly()
	Quantum   time.Duration // times are rounded to multiples of it; 0 = a millisecond
}

// Width is one width of jobs and how many of all jobs have it. Shares need not add up to 1.
type Width struct {
	GPUs      int     // > 0
	Share     float64 // weight among all widths, > 0
	Durations Law     // nil = that of the generator
}

// Named is a name with a weight > 0. Weights need not add up to 1.
type Named struct {
	Name   string
	Weight float64
}

// Mandelbrot is the law of Zipf and Mandelbrot: user k = 0, 1, ... submits in proportion to (k+1+Q)^-S. Both are >= 0;
// an S of 0 means 1, so that the zero value is Zipf's law, 1/(k+1).
type Mandelbrot struct{ S, Q float64 }

// weight of user k.
func (m Mandelbrot) weight(k int) float64 {
	if m.S == 0 {
		return 1 / (float64(k+1) + m.Q)
	}
	return math.Pow(float64(k+1)+m.Q, -m.S)
}

// Validate names the first field that is wrong, its value and what is wanted.
func (g Generator) Validate() error {
	if !bound.Within(g.Jobs, 1, MaxJobs) {
		return fmt.Errorf("jobs %d, want 1 to %d", g.Jobs, MaxJobs)
	}
	if err := g.validateRate(); err != nil {
		return err
	}
	switch law := g.UserLaw; {
	case !bound.Within(g.Users, 0, MaxJobs):
		return fmt.Errorf("users %d, want 0 to %d", g.Users, MaxJobs)
	case !bound.Within(law.S, 0, 100) || !bound.Within(law.Q, 0, 1e9):
		return fmt.Errorf("user law with S %v, Q %v, want S from 0 to 100, Q from 0 to 1e9", law.S, law.Q)
	case !bound.Within(g.Repeat, 0, 1):
		return fmt.Errorf("repeat %v, want 0 to 1", g.Repeat)
	case !bound.Within(g.Quantum, 0, MaxTime):
		return fmt.Errorf("quantum %v, want >= 0", g.Quantum)
	}
	if g.Profile != nil {
		if err := g.Profile.validate(); err != nil {
			return err
		}
	}
	if err := g.validateMix(); err != nil {
		return err
	}
	return g.validateEnd()
}

// validateRate checks what sets the rate of arrivals: the load on the GPUs, or else a profile, perhaps over a span.
func (g Generator) validateRate() error {
	switch loaded := g.loaded(); {
	case loaded && !bound.Within(g.GPUs, 1, MaxGPUs):
		return fmt.Errorf("gpus %d, want 1 to %d", g.GPUs, MaxGPUs)
	case loaded && (!(g.Load > 0) || math.IsInf(g.Load, 0)):
		return fmt.Errorf("load %v, want > 0", g.Load)
	case g.Span != 0 && (loaded || !bound.Within(g.Span, time.Second, MaxTime)):
		return fmt.Errorf("span %v, want 1s to %v, with a profile and without a load", g.Span, MaxTime)
	}
	return nil
}

// validateEnd checks that the jobs arrive in half the time that a trace may span.
func (g Generator) validateEnd() error {
	end, most := g.MeanGap()*float64(g.Jobs), MaxTime.Seconds()/2
	switch {
	case !(end > most):
		return nil
	case g.loaded():
		return fmt.Errorf("%d jobs at load %v arrive over %.3g s, want at most %v: more load or fewer jobs", g.Jobs,
			g.Load, end, most)
	default:
		return fmt.Errorf("%d jobs arrive over %.3g s, want at most %v: a higher rate or fewer jobs", g.Jobs, end, most)
	}
}

// loaded reports whether the load sets the rate.
func (g Generator) loaded() bool { return g.Profile == nil || g.Load != 0 }

// validateMix checks what jobs are like.
func (g Generator) validateMix() error {
	for i, w := range g.mix() {
		if w.GPUs < 1 || w.GPUs > MaxGPUs || !(w.Share > 0 && w.Share <= 1e9) {
			return fmt.Errorf("mix %d is %d GPUs with share %v, want 1 to %d GPUs and a share > 0", i, w.GPUs, w.Share,
				MaxGPUs)
		}
		if err := w.Durations.Validate(); err != nil {
			return fmt.Errorf("mix %d: %w", i, err)
		}
	}
	if work := g.MeanWork(); !(work > 0) {
		return fmt.Errorf("mean work %v GPU-seconds, want > 0", work)
	}
	for i, m := range g.Models {
		if !printable(m) {
			return fmt.Errorf("model %d is %q, %s", i, clip(m), wantWord)
		}
	}
	for i, n := range g.Groups {
		if !printable(n.Name) || !(n.Weight > 0 && n.Weight <= 1e9) {
			return fmt.Errorf("group %d is %q with weight %v, want a name and a weight > 0", i, clip(n.Name), n.Weight)
		}
	}
	_, err := newEndings(g)
	return err
}

// mix returns Mix with its defaults filled in.
func (g Generator) mix() []Width {
	all := g.Durations
	if all == nil {
		all = Philly()
	}
	mix := append([]Width(nil), g.Mix...)
	if len(mix) == 0 {
		mix = []Width{{GPUs: 1, Share: 1}}
	}
	for i := range mix {
		if mix[i].Durations == nil {
			mix[i].Durations = all
		}
	}
	return mix
}

// MeanWork is the expected GPU time of a job in GPU-seconds: the mean over the mix of width times mean duration.
func (g Generator) MeanWork() float64 {
	work, shares := 0.0, 0.0
	for _, w := range g.mix() {
		work += w.Share * float64(w.GPUs) * w.Durations.Mean()
		shares += w.Share
	}
	return work / shares
}

// MeanGap is the expected time between two arrivals in seconds: that at which MeanWork arrives per gap at the rate
// Load*GPUs, or without a Load the jobs come within Span, or without that either the profile's.
func (g Generator) MeanGap() float64 {
	switch {
	case g.Span > 0:
		return g.Span.Seconds() / float64(g.Jobs)
	case !g.loaded():
		return 3600 / g.Profile.PerHour
	}
	return g.MeanWork() / (g.Load * float64(g.GPUs))
}

// Generate returns the trace of all jobs of g, in memory. It panics with the text of Validate if g is wrong.
func Generate(g Generator) *Trace {
	s := newSource(g)
	s.begin()
	t := &Trace{Format: "generated", Zone: "synthetic, no zone", Jobs: make([]Job, g.Jobs)}
	if g.Profile != nil {
		t.Zone = "synthetic, seconds from a Monday, 00:00"
	}
	var names words
	var digits [20]byte
	var d draft
	for i := range t.Jobs {
		s.next(&d)
		t.Jobs[i] = s.job(names.keep(string(strconv.AppendInt(digits[:0], int64(i), 10))), &d)
	}
	return t
}

// stream returns one of the independent random sources of a seed.
func stream(seed, number uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, number)) }

// roundTo rounds seconds to a multiple of quantum, at most MaxTime.
func roundTo(seconds float64, quantum time.Duration) time.Duration {
	n := math.Round(min(seconds, MaxTime.Seconds()) * 1e9 / float64(quantum))
	return min(time.Duration(n)*quantum, MaxTime)
}

// picker draws numbers 0..n-1 by weight.
type picker struct{ upTo []float64 }

func newPicker(n int, weight func(int) float64) picker {
	p := picker{make([]float64, n)}
	sum := 0.0
	for i := range p.upTo {
		sum += weight(i)
		p.upTo[i] = sum
	}
	return p
}

// twice is the probability that two draws are the same.
func (p picker) twice() float64 {
	sum, before := 0.0, 0.0
	for _, x := range p.upTo {
		sum, before = sum+(x-before)*(x-before), x
	}
	all := p.upTo[len(p.upTo)-1]
	return sum / (all * all)
}

// pick searches for the first number whose running sum exceeds a draw.
func (p picker) pick(r *rand.Rand) int {
	last := len(p.upTo) - 1
	u := r.Float64() * p.upTo[last]
	low, high := 0, last
	for low < high {
		if mid := (low + high) / 2; p.upTo[mid] > u {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}
