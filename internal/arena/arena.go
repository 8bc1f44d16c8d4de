// Package arena holds small structures that the decision core reuses instead of allocating: sets of GPUs by length, and
// a heap of jobs by time. It decides nothing.
package arena

import "github.com/trainyard/trainyard/sched"

// Sets recycles small sets of GPUs, so that a quiet engine allocates nothing. The zero value is ready.
type Sets struct{ free [65][][]sched.GPUID }

// CopyOf returns a copy of set that the caller owns until it recycles it; nil if set is empty.
func (p *Sets) CopyOf(set []sched.GPUID) []sched.GPUID {
	n := len(set)
	if n == 0 {
		return nil
	}
	if n < len(p.free) {
		if k := len(p.free[n]); k > 0 {
			c := p.free[n][k-1]
			p.free[n] = p.free[n][:k-1]
			copy(c, set)
			return c
		}
	}
	return append(make([]sched.GPUID, 0, n), set...)
}

// Recycle takes a set back, which its owner must not use any more.
func (p *Sets) Recycle(set []sched.GPUID) {
	if n := len(set); n > 0 && n < len(p.free) {
		p.free[n] = append(p.free[n], set)
	}
}

// SameSet reports whether a and b hold the same GPUs in the same order.
func SameSet(a, b []sched.GPUID) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// JobAt is a job and a time.
type JobAt struct {
	At  sched.Time
	Job sched.JobID
}

func (a JobAt) before(b JobAt) bool { return a.At < b.At || a.At == b.At && a.Job < b.Job }

// JobHeap is a binary heap of jobs by time, earliest first, ties by job. Its first element is the earliest.
type JobHeap []JobAt

// Push adds x.
func (h *JobHeap) Push(x JobAt) {
	*h = append(*h, x)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s[i].before(s[up]) {
			return
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

// Pop removes the earliest element, which must be there, and returns it.
func (h *JobHeap) Pop() JobAt {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	*h = s
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			return top
		}
		if c+1 < last && s[c+1].before(s[c]) {
			c++
		}
		if !s[c].before(s[i]) {
			return top
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
}
