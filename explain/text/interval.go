package text

import (
	"fmt"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

// Until says for people until when something goes on: " until about 14:10 ± 20 min".
func (r *Renderer) Until(s explain.Span) string {
	if s.Unknown {
		return ", no idea yet until when"
	}
	return " until " + r.Around(s)
}

// Around says an interval of time for people: "about 14:10 ± 20 min".
func (r *Renderer) Around(s explain.Span) string {
	switch {
	case s.Unknown:
		return "no idea yet"
	case s.P10 == sched.Never:
		return "a time that is unknown"
	case s.P90 == sched.Never:
		return r.Time(s.P10) + " or later"
	}
	before, after := s.P50.Sub(s.P10), s.P90.Sub(s.P50)
	width := max(before, after)
	switch {
	case width < time.Second:
		return "about " + r.Time(s.P50)
	case width > 2*min(before, after) && width > time.Minute: // "about" would not do
		return fmt.Sprintf("some time from %s to %s", r.Time(s.P10), r.Time(s.P90))
	}
	return fmt.Sprintf("about %s ± %s", r.Time(s.P50), coarse(width))
}

// Rests says what the forecast rests on, "" if there is none.
func (r *Renderer) Rests() string {
	f := r.Forecast
	const rough = 10 // of so few jobs no distribution is known
	switch {
	case f == nil:
		return ""
	case f.Ended == 0:
		return "no job that has ended: a guess"
	case f.Ended == 1:
		return "1 job that has ended: a rough guess"
	case f.Ended < rough:
		return fmt.Sprintf("%d jobs that have ended: a rough guess", f.Ended)
	}
	text := fmt.Sprintf("%d jobs that have ended", f.Ended)
	if f.Draws < 9 {
		text += "; there was no time to simulate more than a few futures"
	}
	return text
}

// RestsOf says what an estimate of the forecast rests on: nothing is as sure of jobs that are not alike.
func (r *Renderer) RestsOf(e *explain.Estimate) string {
	text := r.Rests()
	if b := e.Basis; text != "" && (b == explain.ByUser || b == explain.ByWidth || b == explain.ByAll) {
		text += ", too few of them like this one: it may take far longer or shorter"
	}
	return text
}

// coarse says a duration in one unit.
func coarse(d time.Duration) string {
	const day = 24 * time.Hour
	for _, u := range []struct {
		unit time.Duration
		word string
	}{{day, "days"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		if d >= 2*u.unit {
			return fmt.Sprintf("%d %s", (d+u.unit/2)/u.unit, u.word)
		}
	}
	return fmt.Sprintf("%d s", (d+time.Second/2)/time.Second)
}
