package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Generator says what kind of trace Generate makes. The same Generator gives the same trace on every run.
type Generator struct {
	Seed   uint64
	Jobs   int      // > 0
	Load   float64  // work arriving per second over what GPUs can do, > 0; 1 keeps the cluster just busy
	GPUs   int      // size of the cluster that Load refers to, > 0
	Mix    []Width  // widths of jobs; empty = all jobs have one GPU
	Models []string // names given to jobs; empty = unknown
	Users  int      // users named u0, u1, ...: user k submits in proportion to 1/(k+1); 0 = unknown

	Durations Law           // of widths without a law of their own; nil = Philly()
	Quantum   time.Duration // times are rounded to multiples of it; 0 = a millisecond
}

// Width is one width of jobs and how many of all jobs have it. Shares need not add up to 1.
type Width struct {
	GPUs      int     // > 0
	Share     float64 // weight among all widths, > 0
	Durations Law     // nil = that of the generator
}

// Philly is a law fitted to all 111,549 GPU jobs of Microsoft's Philly trace: three lognormal parts (Kolmogorov-Smirnov
// distance 0.023), cut at 60 days, the length of its longest jobs.
func Philly() Law {
	return Lognormal{Parts: []Part{{.129, 4.16, .17}, {.161, 7.48, .59}, {.710, 7.50, 2.64}}, Max: 60 * 86400}
}

// PhillyMix is the share of jobs by width in the Philly trace, odd widths left out.
func PhillyMix() []Width {
	return []Width{{GPUs: 1, Share: .867}, {GPUs: 2, Share: .023}, {GPUs: 4, Share: .049}, {GPUs: 8, Share: .051},
		{GPUs: 16, Share: .0076}, {GPUs: 32, Share: .0019}, {GPUs: 64, Share: .0003}}
}

// Validate names the first field that is wrong, its value and the wish.
func (g Generator) Validate() error {
	switch {
	case g.Jobs < 1 || g.Jobs > MaxJobs:
		return fmt.Errorf("jobs %d, want 1 to %d", g.Jobs, MaxJobs)
	case g.GPUs < 1 || g.GPUs > MaxGPUs:
		return fmt.Errorf("gpus %d, want 1 to %d", g.GPUs, MaxGPUs)
	case !(g.Load > 0) || math.IsInf(g.Load, 0):
		return fmt.Errorf("load %v, want > 0", g.Load)
	case g.Users < 0 || g.Users > MaxJobs:
		return fmt.Errorf("users %d, want 0 to %d", g.Users, MaxJobs)
	case g.Quantum < 0 || g.Quantum > MaxTime:
		return fmt.Errorf("quantum %v, want >= 0", g.Quantum)
	}
	for i, w := range g.mix() {
		if w.GPUs < 1 || w.GPUs > MaxGPUs || !(w.Share > 0 && w.Share <= 1e9) {
			return fmt.Errorf("mix %d is %d GPUs with share %v, want 1 to %d GPUs and a share > 0", i, w.GPUs, w.Share, MaxGPUs)
		}
		if err := w.Durations.Validate(); err != nil {
			return fmt.Errorf("mix %d: %w", i, err)
		}
	}
	if work := g.MeanWork(); !(work > 0) {
		return fmt.Errorf("mean work %v GPU-seconds, want > 0", work)
	}
	if end := g.MeanGap() * float64(g.Jobs); end > MaxTime.Seconds()/2 {
		return fmt.Errorf("%d jobs at load %v arrive over %.3g s, want at most %v: more load or fewer jobs",
			g.Jobs, g.Load, end, MaxTime.Seconds()/2)
	}
	return nil
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

// MeanGap is the expected time between two arrivals in seconds at which MeanWork arrives per gap at the rate Load*GPUs.
func (g Generator) MeanGap() float64 { return g.MeanWork() / (g.Load * float64(g.GPUs)) }

// Generate makes a trace of jobs named 0, 1, 2, ... that arrive as a Poisson process from time 0 on. Its rate is such
// that expected work over expected gap is exactly Load*GPUs, with the mean of the laws in closed form; a finite trace
// differs by chance, and by rounding to the quantum. Width, duration, model and user are drawn independently of one
// another (but for laws by width) and of the arrivals; models evenly. It panics with the text of Validate if g is wrong.
func Generate(g Generator) *Trace {
	if err := g.Validate(); err != nil {
		panic("trace: generate: " + err.Error())
	}
	arrivals, shapes := stream(g.Seed, 1), stream(g.Seed, 2)
	mix, gap, quantum := g.mix(), g.MeanGap(), g.Quantum
	if quantum == 0 {
		quantum = time.Millisecond
	}
	widths := newPicker(len(mix), func(i int) float64 { return mix[i].Share })
	users := newPicker(g.Users, func(i int) float64 { return 1 / float64(i+1) })
	userNames := make([]string, g.Users)
	for i := range userNames {
		userNames[i] = "u" + strconv.Itoa(i)
	}
	t := &Trace{Format: "generated", Zone: "synthetic, no zone", Jobs: make([]Job, g.Jobs)}
	now := 0.0
	var names words
	var digits [20]byte
	for i := range t.Jobs {
		j := &t.Jobs[i]
		w := mix[widths.pick(shapes)]
		j.Spec.Name = names.keep(string(strconv.AppendInt(digits[:0], int64(i), 10)))
		j.Spec.Submit = sched.Time(roundTo(now, quantum))
		j.Spec.GPUs = sched.Rigid(w.GPUs)
		j.Duration = roundTo(w.Durations.Draw(shapes), quantum)
		if len(g.Models) > 0 {
			j.Spec.Model = g.Models[shapes.IntN(len(g.Models))]
		}
		if g.Users > 0 {
			j.Spec.User = userNames[users.pick(shapes)]
		}
		now += float64(gap * arrivals.ExpFloat64())
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
