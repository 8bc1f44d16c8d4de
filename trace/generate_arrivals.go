package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Profile says how often jobs come. Their rate is PerHour times a factor for the hour of the day, one for the day of
// the week, and one drawn for each hour again: the exponential of a normal number with standard deviation Sigma, whose
// correlation with that of the hour before is Rho, over its mean. Time 0 is a Monday, 00:00. Given the rate, arrivals
// are a Poisson process.
type Profile struct {
	PerHour    float64     // jobs, on average, > 0
	Hours      [24]float64 // > 0; what counts is their ratio
	Days       [7]float64  // Monday first, > 0; what counts is their ratio
	Sigma, Rho float64     // Sigma 0 to 5, Rho from 0 to below 1
	Bursts     *Bursts     // what arrives is bursts of jobs; nil = single jobs
}

// Bursts are jobs that one user submits in a row. They start at the rate of the profile over their mean size.
type Bursts struct {
	// share of bursts of one job, 0 to 1; of the others, size k = 2..Max has a share in proportion to k^-Alpha
	Single   float64
	Alpha    float64 // > 0
	Max      int     // 2 to a million
	Gap      float64 // mean time between two jobs in seconds, > 0
	Together float64 // share of gaps that are 0, from 0 to below 1; the others are exponential

	// Of two jobs in a row in a burst: the probability that they have the same width, by chance or because the second
	// copies the first, 0 to 1; one below that of chance alone is taken for it. And that of a copy with its duration
	// within 10 %.
	SameGPUs, SameDuration float64
}

func (p *Profile) validate() error {
	if !(p.PerHour > 0 && p.PerHour <= 1e9) {
		return fmt.Errorf("profile with %v jobs per hour, want > 0", p.PerHour)
	}
	for h, x := range p.Hours {
		if !(x > 0 && x <= 1e6) {
			return fmt.Errorf("profile of hour %d is %v, want > 0", h, x)
		}
	}
	for d, x := range p.Days {
		if !(x > 0 && x <= 1e6) {
			return fmt.Errorf("profile of day %d is %v, want > 0", d, x)
		}
	}
	if !(p.Sigma >= 0 && p.Sigma <= 5) || !(p.Rho >= 0 && p.Rho < 1) {
		return fmt.Errorf("profile with sigma %v, rho %v, want sigma 0 to 5, rho from 0 to below 1", p.Sigma, p.Rho)
	}
	if b := p.Bursts; b != nil {
		return b.validate()
	}
	return nil
}

func (b *Bursts) validate() error {
	switch {
	case !(b.Single >= 0 && b.Single <= 1) || !(b.SameGPUs >= 0 && b.SameGPUs <= 1) ||
		!(b.SameDuration >= 0 && b.SameDuration <= 1):
		return fmt.Errorf("bursts with shares %v, %v, %v, want 0 to 1", b.Single, b.SameGPUs, b.SameDuration)
	case !(b.Alpha > 0 && b.Alpha <= 100) || b.Max < 2 || b.Max > 1_000_000:
		return fmt.Errorf("bursts of sizes up to %d with alpha %v, want 2 to 1000000, alpha > 0", b.Max, b.Alpha)
	case !(b.Gap > 0 && b.Gap <= 1e6) || !(b.Together >= 0 && b.Together < 1):
		return fmt.Errorf("bursts with gaps of %v s, a share of %v being 0, want > 0 and a share from 0 to below 1",
			b.Gap, b.Together)
	}
	return nil
}

// copying is how often a job must copy the width of the one before it, where chance alone makes them the same so often:
// copying + (1 - copying) chance = SameGPUs.
func (b *Bursts) copying(chance float64) float64 {
	if b.SameGPUs <= chance {
		return b.SameDuration
	}
	return max(b.SameDuration, (b.SameGPUs-chance)/(1-chance))
}

// clock says when jobs arrive, in order, and of which burst they are, if of any.
type clock interface {
	next() (at float64, b *burst)
}

// steady is the Poisson process that starts with a job at 0.
type steady struct {
	random   *rand.Rand
	gap, now float64 // seconds
}

func (s *steady) next() (float64, *burst) {
	at := s.now
	s.now += float64(s.gap * s.random.ExpFloat64())
	return at, nil
}

// tide is the clock of a profile.
type tide struct {
	Profile
	seed      uint64
	perSecond float64 // bursts, on average
	sizes     picker  // of bursts, from 2

	random          *rand.Rand
	levels, lengths *rand.Rand // of hours and of bursts: streams of their own, so that these are the same at any rate
	now             float64    // when the last burst started
	hour            int        // in which that is
	level           float64    // normal number of that hour
	rate            float64    // bursts per second in that hour

	coming float64  // when the next burst starts
	open   []*burst // that have jobs left, a heap by time and number
	begun  int      // bursts
}

// newTide returns the clock of p with so many jobs per second on average over all time.
func newTide(p Profile, seed uint64, perSecond float64) *tide {
	t := &tide{Profile: p, seed: seed, perSecond: perSecond}
	normalize(t.Hours[:])
	normalize(t.Days[:])
	if b := p.Bursts; b != nil {
		sum, weights := 0.0, 0.0
		t.sizes = newPicker(b.Max-1, func(i int) float64 {
			w := math.Pow(float64(i+2), -b.Alpha)
			sum, weights = sum+w*float64(i+2), weights+w
			return w
		})
		t.perSecond /= b.Single + (1-b.Single)*sum/weights
	}
	return t
}

// fit sets the rate so that the first so many jobs are expected to come within a span in seconds, with the hours and
// the sizes of bursts as they come out with this seed.
func (t *tide) fit(jobs int, span float64) {
	bursts := jobs
	if t.Bursts != nil {
		t.lengths = stream(t.seed, 6)
		for bursts = 0; jobs > 0; bursts++ {
			jobs -= t.size()
		}
	}
	t.perSecond *= float64(bursts) / t.due(span)
}

// due is how many bursts are expected within a span.
func (t *tide) due(span float64) float64 {
	t.firstHour()
	sum := 0.0
	for {
		begin := float64(t.hour) * 3600
		if left := span - begin; left <= 3600 {
			return sum + t.rate*left
		}
		sum += t.rate * 3600
		t.nextHour()
	}
}

// normalize scales a list to the mean 1.
func normalize(list []float64) {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	for i := range list {
		list[i] *= float64(len(list)) / sum
	}
}

func (t *tide) begin() {
	t.random, t.lengths = stream(t.seed, 1), stream(t.seed, 6)
	t.now, t.begun, t.open = 0, 0, nil
	t.firstHour()
	t.coming = t.start()
}

// firstHour goes back to the first hour.
func (t *tide) firstHour() {
	t.hour, t.levels = 0, stream(t.seed, 5)
	t.level = t.levels.NormFloat64()
	t.setRate()
}

func (t *tide) nextHour() {
	t.hour++
	t.level = t.Rho*t.level + math.Sqrt(1-t.Rho*t.Rho)*t.levels.NormFloat64()
	t.setRate()
}

// setRate sets the rate of the hour.
func (t *tide) setRate() {
	chance := math.Exp(t.Sigma*t.level - t.Sigma*t.Sigma/2)
	t.rate = t.perSecond * t.Hours[t.hour%24] * t.Days[t.hour/24%7] * chance
}

// start draws when the next burst starts: at that time as many are due since the last as an exponential number says.
func (t *tide) start() float64 {
	due := t.random.ExpFloat64()
	for {
		end := float64(t.hour+1) * 3600
		left := t.rate * (end - t.now)
		if due <= left {
			t.now += due / t.rate
			return t.now
		}
		due -= left
		t.now = end
		t.nextHour()
	}
}

// burst is jobs submitted in a row of which some are left.
type burst struct {
	at     float64 // when the next comes
	left   int     // jobs
	number int     // of the burst

	begun       bool // its first job has been made; below is what that and the last are like
	last        shape
	user, group int
}

func (t *tide) next() (float64, *burst) {
	if t.Bursts == nil {
		at := t.coming
		t.coming = t.start()
		return at, nil
	}
	if len(t.open) == 0 || t.coming < t.open[0].at {
		t.push(&burst{at: t.coming, left: t.size(), number: t.begun})
		t.begun++
		t.coming = t.start()
	}
	b := t.open[0]
	at := b.at
	if b.left--; b.left == 0 {
		t.pop()
		return at, b
	}
	if t.random.Float64() >= t.Bursts.Together {
		b.at += t.Bursts.Gap / (1 - t.Bursts.Together) * t.random.ExpFloat64()
	}
	t.sink()
	return at, b
}

// size draws how many jobs the next burst has.
func (t *tide) size() int {
	if t.lengths.Float64() < t.Bursts.Single {
		return 1
	}
	return t.sizes.pick(t.lengths) + 2
}
