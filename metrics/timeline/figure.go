package timeline

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Figure is something that is known over time.
type Figure uint8

// Figures.
const (
	Held   Figure = iota // GPUs that attempts hold
	Busy                 // GPUs on which work went on; the mean alone is known
	GPUs                 // that are there
	Queue                // jobs that wait
	Asked                // GPUs that they ask for
	Power                // in watts, where that is measured
	Energy               // in kWh by point, where power is measured
	Spend                // what nodes cost in dollars per hour, where they have prices; the mean alone is known
	Cost                 // what nodes cost in dollars by point, where they have prices
	figures
)

var figureWords = [...]string{"held", "busy", "gpus", "queue", "asked", "watts", "kwh", "dollars_per_hour", "cost"}

// String returns the word of a known figure.
func (f Figure) String() string { return figureWords[f] }

// FigureWords are the words of all figures, in order.
func FigureWords() []string { return figureWords[:] }

// FigureNamed returns the figure of a word; false if it is none.
func FigureNamed(word string) (Figure, bool) {
	for f := range figures {
		if figureWords[f] == word {
			return f, true
		}
	}
	return 0, false
}

// Point is a figure in a span of time. Where its mean alone is known low and high are that.
type Point struct {
	From            sched.Time
	Low, Mean, High float64
}

// Points is a figure over time.
type Points struct {
	Known    bool // false: it is not measured, and there are none
	From, To sched.Time
	Width    time.Duration
	List     []Point
}

// extremes are the least and the most of figures by bucket. A bucket in which nothing was so has none.
type extremes struct {
	width time.Duration
	rows  [figures][]extreme
}

type extreme struct {
	any       bool
	low, high float64
}

func (x *extreme) take(o extreme) {
	switch {
	case !o.any:
	case !x.any:
		*x = o
	default:
		x.low, x.high = min(x.low, o.low), max(x.high, o.high)
	}
}

// add adds a step, in buckets as wide as those of b, which has it already.
func (e *extremes) add(b *buckets, s *step) {
	if s.to <= s.from {
		return
	}
	e.fit(b.width)
	gpus := 0
	for c := Down; c <= held; c++ {
		gpus += s.counts[c]
	}
	last := int((s.to - 1).Sub(b.from) / b.width)
	for _, x := range [...]struct {
		of Figure
		v  float64
	}{{Held, float64(s.counts[held])}, {GPUs, float64(gpus)}, {Queue, float64(s.jobs)}, {Asked, float64(s.gpus)},
		{Power, s.watts}} {
		f, v := x.of, x.v
		list := e.rows[f]
		for len(list) <= last {
			list = append(list, extreme{})
		}
		for i := int(s.from.Sub(b.from) / b.width); i <= last; i++ {
			list[i].take(extreme{true, v, v})
		}
		e.rows[f] = list
	}
}

// fit makes buckets as wide as width, which is theirs times a power of two.
func (e *extremes) fit(width time.Duration) {
	for ; e.width > 0 && e.width < width; e.width *= 2 {
		for f, list := range e.rows {
			half := list[:0]
			for i := range list {
				if i%2 == 0 {
					half = append(half, list[i])
				} else {
					half[len(half)-1].take(list[i])
				}
			}
			e.rows[f] = half
		}
	}
	e.width = width
}

// clone returns a copy that may be added to.
func (e *extremes) clone() extremes {
	c := *e
	for f, list := range e.rows {
		c.rows[f] = append([]extreme(nil), list...)
	}
	return c
}

// Points returns a figure from one time to another, as at most so many points, most > 0. They start where buckets do:
// the first may start before from, the last end behind to. It changes nothing.
func (t *Timeline) Points(f Figure, from, to sched.Time, most int) Points {
	p := Points{Known: true, From: t.first, To: t.end}
	b := t.known
	if b == nil || t.end <= b.from {
		return p
	}
	most = max(most, 1)
	known := b.extremes.clone()
	known.fit(b.width)
	first := max(int(from.Sub(b.from)/b.width), 0)
	end := min(int((t.end-1).Sub(b.from)/b.width), int((max(to, b.from+1)-1).Sub(b.from)/b.width)) + 1
	p.Width = b.width
	if from >= t.end || end <= first {
		return p
	}
	each := (end - first + most - 1) / most
	p.Width *= time.Duration(each)
	of := t.valuesOf(f)
	if of == nil {
		return Points{From: t.first, To: t.end, Width: p.Width}
	}
	p.From, p.To = b.from.Add(time.Duration(first)*b.width), min(t.end, b.from.Add(time.Duration(end)*b.width))
	for i := first; i < end; i += each {
		last := min(i+each, end)
		x := Point{From: b.from.Add(time.Duration(i) * b.width)}
		span := min(t.end, b.from.Add(time.Duration(last)*b.width)).Sub(x.From).Seconds()
		var ends extreme
		for k := i; k < last; k++ {
			x.Mean += of(k)
			if k < len(known.rows[f]) {
				ends.take(known.rows[f][k])
			}
		}
		if f != Energy && f != Cost {
			x.Mean /= span
		}
		if x.Low, x.High = x.Mean, x.Mean; ends.any {
			x.Low, x.High = ends.low, ends.high
		}
		p.List = append(p.List, x)
	}
	return p
}

// valuesOf returns the sum of a figure over time by bucket, in seconds where it is a mean; nil if it is not measured.
func (t *Timeline) valuesOf(f Figure) func(bucket int) float64 {
	rows := map[Figure][]int{Held: {heldGPUs}, Queue: {queueJobs}, Asked: {queueGPUs}}[f]
	over := t.known.rows
	switch f {
	case Busy:
		l := t.Losses()
		over, rows = l.Over[:], []int{int(Useful), int(Redone)}
	case GPUs:
		for c := Down; c <= held; c++ {
			rows = append(rows, int(c))
		}
	case Power:
		return t.known.joules.values(t.known, 1)
	case Energy:
		return t.known.joules.values(t.known, 1/3.6e6)
	case Spend:
		return t.known.costs.nodes.values(t.known, 3600)
	case Cost:
		return t.known.costs.nodes.values(t.known, 1)
	}
	return func(i int) (sum float64) {
		for _, r := range rows {
			if i < len(over[r]) {
				sum += float64(over[r][i].Sec) + float64(over[r][i].Nano)/1e9
			}
		}
		return sum
	}
}
