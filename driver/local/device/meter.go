package device

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Meter makes means of samples, by device: of power by the energy counter where there is one, else of the readings
// between samples, each mean of two. A counter that falls, as after a reset of its GPU, is not believed for that
// interval.
type Meter struct {
	last map[string]point
	sums map[string]*sum
}

type point struct {
	at time.Time
	r  Reading
}

// sum is what went on since means were last taken.
type sum struct {
	joules, powered float64 // energy, and the seconds in which it was known
	used, looked    float64 // use x seconds, and the seconds
	watts, use      float64 // as last read
	mib             float64 // most memory in use
}

// Mean is what a device did since means were last taken. What is not known is Unknown.
type Mean struct {
	Watts float64
	Use   float64 // 0..1
	MiB   float64 // most memory in use
}

// See folds a sample.
func (m *Meter) See(s *Sample) {
	if m.last == nil {
		m.last, m.sums = make(map[string]point), make(map[string]*sum)
	}
	for name, r := range s.Readings {
		x := m.sums[name]
		if x == nil {
			x = &sum{mib: Unknown}
			m.sums[name] = x
		}
		x.watts, x.use, x.mib = r.Watts, r.Use, max(x.mib, r.UsedMiB)
		if p, ok := m.last[name]; ok {
			x.add(&p, &r, s.At.Sub(p.at).Seconds())
		}
		m.last[name] = point{s.At, r}
	}
}

// add takes the interval between two readings.
func (x *sum) add(p *point, r *Reading, seconds float64) {
	if !(seconds > 0) {
		return
	}
	switch energy := r.Joules - p.r.Joules; {
	case r.Joules != Unknown && p.r.Joules != Unknown && energy >= 0:
		x.joules, x.powered = x.joules+energy, x.powered+seconds
	case r.Watts != Unknown && p.r.Watts != Unknown:
		x.joules, x.powered = x.joules+(r.Watts+p.r.Watts)/2*seconds, x.powered+seconds
	}
	if r.Use != Unknown && p.r.Use != Unknown {
		x.used, x.looked = x.used+(r.Use+p.r.Use)/2*seconds, x.looked+seconds
	}
}

// Take returns the means of the devices that were seen since it was last called, and starts again.
func (m *Meter) Take() map[string]Mean {
	means := make(map[string]Mean, len(m.sums))
	for name, x := range m.sums {
		mean := Mean{x.watts, x.use, x.mib}
		if x.powered > 0 {
			mean.Watts = x.joules / x.powered
		}
		if x.looked > 0 {
			mean.Use = x.used / x.looked
		}
		means[name] = mean
	}
	clear(m.sums)
	return means
}

// Power returns the power of several devices together; 0 = that of one of them is unknown.
func Power(means map[string]Mean, names []string) (w sched.Watts) {
	for _, name := range names {
		x, known := means[name]
		if !known || x.Watts == Unknown {
			return 0
		}
		w += sched.Watts(x.Watts)
	}
	return w
}

// Use returns the mean use of several devices, 0 if it is not known of any, and the most memory in use on one, in GB.
func Use(means map[string]Mean, names []string) (use float64, memGB float32) {
	n := 0
	for _, name := range names {
		x, known := means[name]
		if known && x.Use != Unknown {
			use += x.Use
			n++
		}
		memGB = max(memGB, float32(x.MiB/1024))
	}
	return use / float64(max(n, 1)), memGB
}
