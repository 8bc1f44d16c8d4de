package trace

import (
	"fmt"
	"time"
)

// Arrivals says when jobs are submitted. Without Clock, days start at time 0 and nothing is known of weekdays.
type Arrivals struct {
	Clock    bool    // the clock is known: hours and weekdays are those it showed
	Hours    [24]int // jobs by hour of the day
	Weekdays [7]int  // jobs by day of the week, Monday first; zero without Clock
	Course   [60]int // jobs by sixtieth of the time between first and last submission; all in the first where that is 0
}

// arrivals counts the jobs of t, which there are.
func arrivals(t *Trace, span time.Duration) Arrivals {
	a := Arrivals{Clock: !t.Origin.IsZero()}
	first := time.Duration(t.Jobs[0].Spec.Submit)
	midnight := time.Duration(0)
	if a.Clock {
		midnight = time.Duration(t.Origin.Hour())*time.Hour + time.Duration(t.Origin.Minute())*time.Minute +
			time.Duration(t.Origin.Second())*time.Second
	}
	monday := (int(t.Origin.Weekday()) + 6) % 7
	for i := range t.Jobs {
		at := time.Duration(t.Jobs[i].Spec.Submit)
		a.Hours[(at+midnight)/time.Hour%24]++
		if a.Clock {
			a.Weekdays[(monday+int((at+midnight)/(24*time.Hour)))%7]++
		}
		if span > 0 {
			a.Course[min(int(float64(at-first)/float64(span)*60), 59)]++
		} else {
			a.Course[0]++
		}
	}
	return a
}

// Doubts says what is doubtful about the jobs of t as a whole, s being its summary: columns that are hardly usable,
// durations that look cut, parts of GPUs that are rounded up.
func (t *Trace) Doubts(s *Summary) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if s.Jobs == 0 {
		return nil
	}
	switch {
	case t.Profiled:
		add("durations follow from profiles of the models, which the file does not have: nothing can be said of load " +
			"or of GPU time")
	case s.Duration.Max == 0:
		add("all durations are 0: nothing can be said of load or of GPU time")
	}
	if n := t.longest(s.Duration.Max); !t.clamped && n >= 10 && 200*n >= s.Jobs && s.Duration.Max >= time.Hour {
		add("%d durations (%.1f%%) are the longest, %v, to the second: they look clamped", n,
			100*float64(n)/float64(s.Jobs), s.Duration.Max)
	}
	for _, c := range []struct {
		what   string
		counts []Count
	}{{"user", s.Users}, {"group", s.Groups}, {"model", s.Models}, {"class", s.Classes},
		{"state", count(t.Jobs, state)}, {"GPU type", count(t.Jobs, gpuType)}} {
		for _, n := range c.counts {
			if n.Name == "" && 2*n.Jobs > s.Jobs {
				add("the %s is unknown for %.1f%% of the jobs: hardly usable", c.what,
					100*float64(n.Jobs)/float64(s.Jobs))
			}
		}
	}
	if s.Partial > 0 {
		add("parts of GPUs: %.4g GPU hours are booked where %.4g are asked for", float64(s.GPUTime)/3600,
			float64(s.AskedFor)/3600)
	}
	return list
}

// longest returns how many jobs are as long as the longest, which is no chance if they are many.
func (t *Trace) longest(duration time.Duration) int {
	n := 0
	for i := range t.Jobs {
		if t.Jobs[i].Duration == duration {
			n++
		}
	}
	return n
}
