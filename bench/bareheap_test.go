package bench

import (
	"context"
	"testing"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
)

// typedHeap is a binary heap of times.
type typedHeap []int64

func (h *typedHeap) push(x int64) {
	*h = append(*h, x)
	s := *h
	for i := len(s) - 1; i > 0 && s[i] < s[(i-1)/2]; i = (i - 1) / 2 {
		s[i], s[(i-1)/2] = s[(i-1)/2], s[i]
	}
}

func (h *typedHeap) pop() int64 {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	*h = s
	for i := 0; ; {
		c := 2*i + 1
		if c+1 < last && s[c+1] < s[c] {
			c++
		}
		if c >= last || s[i] <= s[c] {
			return top
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
}

// heapWork is what a simulator's list of future events held: times that were put in, each when another had come.
type heapWork []struct{ at, until int64 }

// play puts in all times, each once those before its moment are out, and then takes out the rest.
func (w heapWork) play() {
	var h typedHeap
	for i := range w {
		for len(h) > 0 && h[0] <= w[i].at {
			h.pop()
		}
		h.push(w[i].until)
	}
	for len(h) > 0 {
		h.pop()
	}
}

// attemptWork records when attempts started and ended in a run.
type attemptWork struct {
	work heapWork
	open map[sched.JobID]int // index of the attempt that runs
}

func (a *attemptWork) Log(_ *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.AttemptStarted:
		a.open[e.Job] = len(a.work)
		a.work = append(a.work, struct{ at, until int64 }{int64(e.Time), int64(e.Time)})
	case sched.AttemptEnded:
		if i, ok := a.open[e.Job]; ok {
			a.work[i].until = int64(e.Time)
			delete(a.open, e.Job)
		}
	}
}

// heapOf returns the starts and ends of all attempts of a run: what a bare heap has to hold of it.
func heapOf(b testing.TB, s simulate.Request) heapWork {
	b.Helper()
	a := &attemptWork{open: make(map[sched.JobID]int)}
	s.Sinks = []eventlog.Sink{a}
	if _, err := s.Run(context.Background()); err != nil {
		b.Fatal(err)
	}
	return a.work
}

// BenchmarkBareHeap pushes and pops the ends of all Philly jobs as they arrive, on a typed heap and nothing else: the
// limit for any event-driven simulator of these jobs.
func BenchmarkBareHeap(b *testing.B) {
	t := phillyTrace(b)
	for b.Loop() {
		var h typedHeap
		for i := range t.Jobs {
			now := int64(t.Jobs[i].Spec.Submit)
			for len(h) > 0 && h[0] <= now {
				h.pop()
			}
			h.push(now + int64(t.Jobs[i].Duration))
		}
		for len(h) > 0 {
			h.pop()
		}
	}
}
