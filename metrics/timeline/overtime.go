package timeline

import (
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Series is what the cluster did over time, as means of buckets of Width from From on.
type Series struct {
	From  sched.Time
	Width time.Duration
	Last  time.Duration // of the last bucket, which may be shorter
	Held  []float64     // GPUs held by attempts
	GPUs  []float64     // that are there
	Queue []float64     // jobs that wait
	Asked []float64     // GPUs that they ask for
	Watts []float64     // nil = unknown
	// of nodes, owned and rented, and of energy, per hour; nil = unknown
	Dollars, EnergyDollars []float64
}

// Series returns what the cluster did up to the last event about a job that was not done.
func (t *Timeline) Series() Series {
	if t.known == nil {
		return Series{From: t.first}
	}
	b := t.known
	n := 0
	for _, row := range b.rows {
		n = max(n, len(row))
	}
	s := Series{From: b.from, Width: b.width, Last: b.width}
	if n > 0 {
		s.Last = t.end.Sub(b.from) - time.Duration(n-1)*b.width
	}
	mean := func(row int, i int) float64 {
		if i >= len(b.rows[row]) {
			return 0
		}
		a := b.rows[row][i]
		return (float64(a.Sec) + float64(a.Nano)/1e9) / s.length(i, n)
	}
	for i := range n {
		all := 0.0
		for c := Down; c <= held; c++ {
			all += mean(int(c), i)
		}
		s.GPUs = append(s.GPUs, all)
		s.Held = append(s.Held, mean(heldGPUs, i))
		s.Queue = append(s.Queue, mean(queueJobs, i))
		s.Asked = append(s.Asked, mean(queueGPUs, i))
	}
	s.Watts = b.joules.perSecond(b, &s, n, 1)
	s.Dollars = b.costs.nodes.perSecond(b, &s, n, 3600)
	s.EnergyDollars = b.costs.energy.perSecond(b, &s, n, 3600)
	return s
}

// length returns the seconds of bucket i of n.
func (s *Series) length(i, n int) float64 {
	if i == n-1 && s.Last > 0 {
		return s.Last.Seconds()
	}
	return s.Width.Seconds()
}

// amounts are sums by bucket of what is known per second: joules, dollars.
type amounts struct {
	any   bool
	width time.Duration
	list  []float64
}

// add adds so much per second, in buckets as wide as those of b.
func (x *amounts) add(b *buckets, from, to sched.Time, perSecond float64) {
	if perSecond == 0 {
		return
	}
	b.reach(to)
	for a := from; a < to; {
		i := int(a.Sub(b.from) / b.width)
		end := min(to, b.from.Add(time.Duration(i+1)*b.width))
		x.put(b, i, perSecond*end.Sub(a).Seconds())
		a = end
	}
}

// put adds an amount to a bucket of b.
func (x *amounts) put(b *buckets, bucket int, amount float64) {
	x.any = true
	x.list, x.width = x.at(b), b.width
	for len(x.list) <= bucket {
		x.list = append(x.list, 0)
	}
	x.list[bucket] += amount
}

// at returns the list in buckets as wide as those of b.
func (x *amounts) at(b *buckets) []float64 {
	for x.width > 0 && x.width < b.width {
		half := x.list[:0]
		for i := 0; i < len(x.list); i += 2 {
			sum := x.list[i]
			if i+1 < len(x.list) {
				sum += x.list[i+1]
			}
			half = append(half, sum)
		}
		x.list, x.width = half, x.width*2
	}
	return x.list
}

// clone returns a copy that may be added to.
func (x *amounts) clone() amounts { return amounts{x.any, x.width, slices.Clone(x.list)} }

// perSecond returns the means of n buckets of a series, each in the given unit and second; nil = unknown.
func (x *amounts) perSecond(b *buckets, s *Series, n int, unit float64) (means []float64) {
	if !x.any {
		return nil
	}
	list := x.at(b)
	for i := range n {
		mean := 0.0
		if i < len(list) {
			mean = list[i] / s.length(i, n) * unit
		}
		means = append(means, mean)
	}
	return means
}

// values returns amounts times a factor by bucket of b; nil = unknown. It changes nothing.
func (x *amounts) values(b *buckets, by float64) func(bucket int) float64 {
	if !x.any {
		return nil
	}
	y := x.clone()
	list := y.at(b)
	return func(i int) float64 {
		if i >= len(list) {
			return 0
		}
		return list[i] * by
	}
}

// costs are dollars by bucket.
type costs struct {
	nodes, energy amounts
}

// add adds what a step cost.
func (c *costs) add(b *buckets, s *step) {
	c.nodes.add(b, s.from, s.to, s.perHour/3600)
	if s.atOnce != 0 {
		b.reach(s.to)
		c.nodes.put(b, int(s.from.Sub(b.from)/b.width), s.atOnce)
	}
	c.energy.add(b, s.from, s.to, s.spending.energy/s.to.Sub(s.from).Seconds())
}

// clone returns a copy that may be added to.
func (c *costs) clone() costs { return costs{c.nodes.clone(), c.energy.clone()} }
