package driver

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that clocks which disagree, that of the API server with ours or that of one leader with the next one's, fail
// no start, let none hang, and never have time fall.
func TestClockSkew(t *testing.T) {
	late := func(w *world) {
		w.silent["a"] = true
		w.start(0, 0, 1)
		w.pass(9 * time.Minute)
		w.attempt(0, sched.Starting)
	}
	successor := func(w *world, by time.Duration) {
		w.run()
		was := w.v.Now
		w.d.Close()
		o := options(w.cluster)
		o.Origin = origin.Add(-by)
		w.take(o)
		w.settle()
		w.attempt(0, sched.Running)
		if passed := time.Duration(w.d.Now() - was); passed < 500*time.Millisecond ||
			passed > max(by, 0)+5*time.Second {
			w.Errorf("%v passed for those whose clock is %v ahead of the last leader's", passed, by)
		}
		w.stop(0)
		w.settle()
		w.ended(sched.Preempted, "stopped as ordered")
		for i := 1; i < len(w.events); i++ {
			if w.events[i].Time < w.events[i-1].Time {
				w.Errorf("event %d is at %v, after one at %v", i, w.events[i].Time, w.events[i-1].Time)
			}
		}
	}
	play(t, []scene{
		{name: "the API server is behind: the start has its time", width: 2, test: func(w *world) {
			w.skew = -time.Hour
			late(w)
			w.silent["a"] = false
			w.settle()
			w.attempt(0, sched.Running)
		}},
		{name: "the API server is ahead: the start has no more than its time", width: 2, test: func(w *world) {
			w.skew = time.Hour
			late(w)
			w.pass(2 * time.Minute)
			w.silent["a"] = false
			w.settle()
			w.last(sched.StartFailed)
		}},
		{name: "the next leader is behind", width: 2, test: func(w *world) { successor(w, -time.Hour) }},
		{name: "the next leader is far ahead", width: 2, test: func(w *world) { successor(w, time.Hour) }},
		{name: "a job from the future has arrived", width: 2, test: func(w *world) {
			w.skew = time.Hour
			must(w, w.Create(w.Context(), objects.Job("early", 1, nil)))
			w.settle()
			if s := w.v.Jobs[1].Spec; s.Submit > w.v.Now {
				w.Errorf("submitted at %v, it is %v", s.Submit, w.v.Now)
			}
		}},
	})
}
