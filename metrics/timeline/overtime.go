package timeline

import (
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
	if b.joules.any {
		list := b.joules.at(b)
		for i := range n {
			watts := 0.0
			if i < len(list) {
				watts = list[i] / s.length(i, n)
			}
			s.Watts = append(s.Watts, watts)
		}
	}
	return s
}

// length returns the seconds of bucket i of n.
func (s *Series) length(i, n int) float64 {
	if i == n-1 && s.Last > 0 {
		return s.Last.Seconds()
	}
	return s.Width.Seconds()
}

// energy is what was drawn over time, in joules by bucket.
type energy struct {
	any   bool
	width time.Duration
	list  []float64
}

// add adds a step, in buckets as wide as those of b.
func (e *energy) add(b *buckets, s *step) {
	if s.watts == 0 {
		return
	}
	e.any = true
	e.list, e.width = e.at(b), b.width
	for a := s.from; a < s.to; {
		i := int(a.Sub(b.from) / b.width)
		end := min(s.to, b.from.Add(time.Duration(i+1)*b.width))
		for len(e.list) <= i {
			e.list = append(e.list, 0)
		}
		e.list[i] += s.watts * end.Sub(a).Seconds()
		a = end
	}
}

// at returns the list in buckets as wide as those of b.
func (e *energy) at(b *buckets) []float64 {
	for e.width > 0 && e.width < b.width {
		half := e.list[:0]
		for i := 0; i < len(e.list); i += 2 {
			sum := e.list[i]
			if i+1 < len(e.list) {
				sum += e.list[i+1]
			}
			half = append(half, sum)
		}
		e.list, e.width = half, e.width*2
	}
	return e.list
}
