package variability

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Features are what a profiler says of an application on one GPU, in percent of the peak, 0..100.
//
// Source: released code, branch classification: the Nsight Compute metrics
// dram__throughput.avg.pct_of_peak_sustained_elapsed and smsp__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active.
type Features struct {
	DRAMUtil   float64 // use of memory bandwidth
	PeakFUUtil float64 // use of the functional unit in use most
}

// Kernel is what a profiler says of one kernel, or of all runs of one kernel.
type Kernel struct {
	Seconds  float64 // that it took, >= 0
	Features         // while it ran
}

// Weighted returns the features of an application from those of its kernels, each counting for the time it took:
// value = sum(m_k t_k) / sum(t_k).
//
// Source: Minos, arXiv 2604.03591, the weighting; PAL does not say how kernels are summed up.
func Weighted(kernels []Kernel) (Features, error) {
	var f Features
	total := 0.0
	for i, k := range kernels {
		if !(k.Seconds >= 0 && k.Seconds <= 1e9) || !k.valid() {
			return Features{}, fmt.Errorf("variability: kernel %d: %+v, want seconds in 0..1e9 and features in 0..100",
				i, k)
		}
		f.DRAMUtil += float64(k.DRAMUtil * k.Seconds)
		f.PeakFUUtil += float64(k.PeakFUUtil * k.Seconds)
		total += k.Seconds
	}
	if total == 0 {
		return Features{}, fmt.Errorf("variability: %d kernels that take no time, want some that do", len(kernels))
	}
	return Features{min(100, f.DRAMUtil/total), min(100, f.PeakFUUtil/total)}, nil
}

func (f Features) valid() bool {
	return f.DRAMUtil >= 0 && f.DRAMUtil <= 100 && f.PeakFUUtil >= 0 && f.PeakFUUtil <= 100
}

func (f Features) distance2(g Features) float64 {
	x, y := f.DRAMUtil-g.DRAMUtil, f.PeakFUUtil-g.PeakFUUtil
	return float64(x*x) + float64(y*y)
}

// compare orders features from the most compute-bound on: by functional units less memory, then by functional units.
func (f Features) compare(g Features) int {
	return cmp.Or(cmp.Compare(g.PeakFUUtil-g.DRAMUtil, f.PeakFUUtil-f.DRAMUtil),
		cmp.Compare(g.PeakFUUtil, f.PeakFUUtil))
}

// MaxApps bounds the applications from which a Classifier learns.
const MaxApps = 1 << 12

// exactApps is the number of applications up to which all ways to class them are tried.
const exactApps = 10

// Classifier knows the centres of the classes, in order from the most compute-bound, hence most sensitive, on.
type Classifier struct{ Centres []Features }

// Train finds classes, 1..4 of them, by k-means on the features of applications of which at least as many differ: PAL's
// classes are 4 in code and 3 in its follow-up Minos. The order of apps does not matter, and the same apps give the
// same classes always.
//
// Up to 10 applications the classes are optimal; above, they are the best of 32 starts by k-means++ from a fixed
// seed.
//
// Deviation: how the published classes are ordered is not known beyond compute-bound first. We take the percentage of
// functional units less that of memory.
func Train(apps []Features, classes int) (*Classifier, error) {
	if classes < 1 || classes > len(Labels) {
		return nil, fmt.Errorf("variability: %d classes, want 1..%d", classes, len(Labels))
	}
	if len(apps) > MaxApps {
		return nil, fmt.Errorf("variability: %d applications, want at most %d", len(apps), MaxApps)
	}
	for i, f := range apps {
		if !f.valid() {
			return nil, fmt.Errorf("variability: application %d: %+v, want features in 0..100", i, f)
		}
	}
	sorted := slices.SortedFunc(slices.Values(apps), Features.compare)
	if n := len(slices.Compact(slices.Clone(sorted))); n < classes {
		return nil, fmt.Errorf("variability: %d applications that differ, want at least %d for as many classes", n,
			classes)
	}
	search := &planeSearch{apps: sorted, classes: classes, cost: math.Inf(1)}
	if len(sorted) <= exactApps {
		search.all(make([]int, 0, len(sorted)), 0)
	} else {
		search.restarts(32)
	}
	slices.SortFunc(search.best, Features.compare)
	return &Classifier{search.best}, nil
}

// Class returns the class of an application, that of the nearest centre; ties go to the more sensitive one.
func (c *Classifier) Class(f Features) int {
	best := 0
	for i, centre := range c.Centres {
		if f.distance2(centre) < f.distance2(c.Centres[best]) {
			best = i
		}
	}
	return best
}

// planeSearch looks for the classes of least total squared distance to their centres.
type planeSearch struct {
	apps    []Features // sorted
	classes int
	best    []Features // centres
	cost    float64    // of best
}

// all tries every way to class apps[len(of):], given the classes of the others, of which there are used.
func (s *planeSearch) all(of []int, used int) {
	if len(s.apps)-len(of) < s.classes-used {
		return
	}
	if len(of) == len(s.apps) {
		s.offer(s.centres(of, nil), of)
		return
	}
	for c := range min(used+1, s.classes) {
		s.all(append(of, c), max(used, c+1))
	}
}

// offer keeps centres if they cost less than the best so far, rounding aside.
func (s *planeSearch) offer(centres []Features, of []int) {
	cost := 0.0
	for i, f := range s.apps {
		cost += f.distance2(centres[of[i]])
	}
	if cost < s.cost-1e-9 || s.best == nil {
		s.best, s.cost = centres, cost
	}
}

// centres returns the means of the classes; an empty one stays where it was.
func (s *planeSearch) centres(of []int, was []Features) []Features {
	sums, counts := make([]Features, s.classes), make([]float64, s.classes)
	for i, f := range s.apps {
		c := of[i]
		sums[c].DRAMUtil += f.DRAMUtil
		sums[c].PeakFUUtil += f.PeakFUUtil
		counts[c]++
	}
	for c := range sums {
		if counts[c] == 0 {
			sums[c] = was[c]
			continue
		}
		sums[c] = Features{sums[c].DRAMUtil / counts[c], sums[c].PeakFUUtil / counts[c]}
	}
	return sums
}

// restarts improves n random starts until nothing changes.
//
// Source: Arthur and Vassilvitskii, "k-means++", SODA 2007.
func (s *planeSearch) restarts(n int) {
	r := rand.New(rand.NewPCG(1, 0))
	of := make([]int, len(s.apps))
	for range n {
		centres := s.seeds(r)
		for range 100 { // far more turns than it ever takes
			changed := false
			for i, f := range s.apps {
				c := (&Classifier{centres}).Class(f)
				changed = changed || of[i] != c
				of[i] = c
			}
			if centres = s.centres(of, centres); !changed {
				break
			}
		}
		s.offer(centres, of)
	}
}

// seeds draws centres from apps, each with a chance that grows with the square of its distance to those drawn before.
func (s *planeSearch) seeds(r *rand.Rand) []Features {
	centres := []Features{s.apps[r.IntN(len(s.apps))]}
	for len(centres) < s.classes {
		away, total := make([]float64, len(s.apps)), 0.0
		for i, f := range s.apps {
			away[i] = f.distance2(centres[(&Classifier{centres}).Class(f)])
			total += away[i]
		}
		at, left := 0, r.Float64()*total
		for i, d := range away {
			if d > 0 {
				if at = i; left < d {
					break
				}
				left -= d
			}
		}
		centres = append(centres, s.apps[at])
	}
	return centres
}
