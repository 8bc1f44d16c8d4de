package sim

import "github.com/trainyard/trainyard/sched"

// timed is something that will happen to an attempt (or a node) at a time, unless the attempt is over by then.
type timed struct {
	at      sched.Time
	order   uint64 // of being pushed; breaks ties
	job     sched.JobID
	attempt int32
	number  int32 // of the epoch that ends, or of the pace it was queued at
	kind    occurrence
}

type occurrence uint8

const (
	up occurrence = iota
	workDone
	gone
	paceEnd
	report
	epochEnd
	nodeReady
	rented
)

// agenda is what will happen, in order of time and, of what happens together, of being pushed.
type agenda struct {
	heap   timedHeap
	pushed uint64
}

// push queues t after all that is queued for the same time.
func (a *agenda) push(t timed) {
	a.pushed++
	t.order = a.pushed
	a.heap.push(t)
}

// next returns the time of what happens first; sched.Never if nothing will.
func (a *agenda) next() sched.Time {
	if len(a.heap) == 0 {
		return sched.Never
	}
	return a.heap[0].at
}

// timedHeap is a binary heap by (at, order).
type timedHeap []timed

func (a *timed) before(b *timed) bool { return a.at < b.at || a.at == b.at && a.order < b.order }

func (h *timedHeap) push(x timed) {
	*h = append(*h, x)
	s := *h
	i := len(s) - 1
	for i > 0 {
		p := (i - 1) / 2
		if !x.before(&s[p]) {
			break
		}
		s[i] = s[p]
		i = p
	}
	s[i] = x
}

func (h *timedHeap) pop() timed {
	s := *h
	top, last := s[0], len(s)-1
	x := s[last]
	s = s[:last]
	*h = s
	if last == 0 {
		return top
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= last {
			break
		}
		if c+1 < last && s[c+1].before(&s[c]) {
			c++
		}
		if !s[c].before(&x) {
			break
		}
		s[i] = s[c]
		i = c
	}
	s[i] = x
	return top
}
