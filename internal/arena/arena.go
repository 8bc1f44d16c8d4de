// Package arena holds small structures that the decision core reuses instead of allocating: sets of GPUs by length, and
// a heap of jobs by time. It decides nothing.
package arena

import (
	"math/bits"

	"github.com/trainyard/trainyard/sched"
)

// Sets recycles sets of GPUs, so that a quiet engine allocates nothing. The zero value is ready.
type Sets struct {
	free [65][][]sched.GPUID // by length
	wide [32][][]sched.GPUID // longer ones, by the power of two that is their capacity
}

// list returns the list of the sets that one of n GPUs can be made of, and their capacity.
func (p *Sets) list(n int) (list *[][]sched.GPUID, room int) {
	if n < len(p.free) {
		return &p.free[n], n
	}
	k := bits.Len(uint(n - 1))
	return &p.wide[k], 1 << k
}

// CopyOf returns a copy of set that the caller owns until it recycles it; nil if set is empty.
func (p *Sets) CopyOf(set []sched.GPUID) []sched.GPUID {
	if len(set) == 0 {
		return nil
	}
	list, room := p.list(len(set))
	if k := len(*list); k > 0 {
		c := (*list)[k-1][:len(set)]
		*list = (*list)[:k-1]
		copy(c, set)
		return c
	}
	return append(make([]sched.GPUID, 0, room), set...)
}

// Recycle takes a set back, of which there must be no other owner, and which is not to be used any more.
func (p *Sets) Recycle(set []sched.GPUID) {
	if n := len(set); n > 0 {
		if list, room := p.list(n); cap(set) >= room {
			*list = append(*list, set)
		}
	}
}

// SameSet reports whether a and b hold the same GPUs in the same order.
func SameSet(a, b []sched.GPUID) bool {
	if len(a) != len(b) {
		return false
	}
	for ; len(a) >= 32; a, b = a[32:], b[32:] { // at once
		if [32]sched.GPUID(a) != [32]sched.GPUID(b) {
			return false
		}
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
