package shim

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/procs"
)

// wait waits until the job's process has ended, or is to end: because that was ordered, or because its time is over.
// Before that it is warned, once more if its time was made longer since. The shim counts, so that the limit holds
// without a manager.
func (s *shim) wait(group *procs.Group, main int, done <-chan struct{}, over *Over) (ended bool) {
	for {
		times, changed := s.timing()
		warn, limit := s.timers(times, over)
		select {
		case <-changed:
		case <-done:
			return true
		case <-s.stop:
			return false
		case <-warn:
			over.Warned = time.Now()
			over.reached = s.warn(group, main, over)
		case <-s.terminal.over():
			over.TimedOut = true
			over.Text = fmt.Sprintf("no key was typed, and nothing written, for %v", s.order.Terminal)
			return false
		case <-limit:
			over.TimedOut = true
			return false
		}
	}
}

// timers returns what fires when the job is to be warned and when its time is over; nil = never.
func (s *shim) timers(t task.Times, over *Over) (warn, limit <-chan time.Time) {
	if t.Limit == 0 {
		return nil, nil
	}
	left := time.Until(over.Started.Add(t.Limit))
	if left > t.Warn { // also where it was warned, of an end that was sooner
		over.Warned, over.reached = time.Time{}, false
	}
	if t.Warn > 0 && over.Warned.IsZero() {
		warn = time.After(left - t.Warn)
	}
	return warn, time.After(left)
}

// warn sends the signal that asks to save to those who would get it at a stop, if they handle it: a warning ends no
// one. While a process may handle it that has not run its program yet it looks again. It reports whether anyone got it.
func (s *shim) warn(group *procs.Group, main int, over *Over) (reached bool) {
	a := newAsking(s, group, main, over)
	var list []node
	for end, pause := over.Warned.Add(mostNewborn), firstLook; ; pause *= 2 {
		since := SinceBoot()
		members, err := group.Look(a.sig, rankVariables...)
		if err != nil {
			slog.Warn("the job gets no warning", "error", err)
			return false
		}
		list = a.nodes(members, since, over.Warned)
		if time.Now().After(end) || !slices.ContainsFunc(list, func(n node) bool { return n.newborn }) {
			break
		}
		time.Sleep(pause)
	}
	for _, i := range audience(s.order.Save.To, main, list) {
		if n := &list[i]; n.Handles {
			if _, err := n.Signal(a.sig); err != nil {
				slog.Warn("a process gets no warning", "error", err)
			}
			reached = true
		}
	}
	return reached
}
