package whatif

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// mostOthers bounds the jobs that others are taken to submit, in one simulated future.
const mostOthers = 1000

// others returns jobs that others submit after v, as they did before it: stretches of the past come again, one after
// another, with all that came in them. So jobs come in bursts if they did before, and where the past has two days, at
// the hours at which they came. work is that of each job of v in all, of those that are not done as drawn; 0 = it never
// ran. What is drawn depends on r alone.
//
// Source: the moving-block bootstrap (Kuensch, 1989), of days, or of quarters of a shorter past, which is taken for a
// circle.
func others(v *sched.View, work []time.Duration, until sched.Time, r *rand.Rand) (list []trace.Job) {
	const few = 10 // there is no rate of so few
	if len(v.Jobs) < few || v.Now <= v.Jobs[0].Arrived {
		return nil
	}
	p := pastOf(v)
	at := v.Now
	from := p.like(r)
	for range mostOthers { // stretches: one may be empty
		if at >= until || len(list) == mostOthers {
			break
		}
		for _, part := range p.parts(from) {
			for i := part.first; i < part.end && len(list) < mostOthers; i++ {
				spec := *v.Jobs[i].Spec
				spec.Submit = at.Add(v.Jobs[i].Arrived.Sub(from) + part.shift)
				if work[i] <= 0 || spec.Submit >= until {
					continue
				}
				spec.Name, spec.After, spec.NotBef, spec.Deadline = fmt.Sprint("later", len(list)), nil, 0, 0
				list = append(list, trace.Job{Spec: spec, Duration: AsWanted(&v.Jobs[i], work[i])})
			}
		}
		at, from = at.Add(p.stretch), p.from(r)
	}
	return list
}

// past is what came before a moment, to be cut into stretches.
type past struct {
	jobs       []sched.Job
	begin, end sched.Time
	stretch    time.Duration
	days       int // whole ones; fewer than 2 = the hours do not matter
}

func pastOf(v *sched.View) past {
	const day = 24 * time.Hour
	p := past{jobs: v.Jobs, begin: v.Jobs[0].Arrived, end: v.Now}
	if p.days = int(p.end.Sub(p.begin) / day); p.days >= 2 {
		p.stretch = day
	} else {
		p.stretch = p.end.Sub(p.begin)/4 + 1
	}
	return p
}

// lately is how far back the past is compared with the moment, to say whether a burst goes on.
const lately = 10 * time.Minute

// like draws the start of the first stretch: an instant as long after an arrival as the moment is after the last, one
// of the tenth of them, or ten, before which about as many had come lately. After the last job of a burst there comes a
// burst's next more often than at any other time.
//
// Source: analogues (Lorenz, 1969).
func (p *past) like(r *rand.Rand) sched.Time {
	n := len(p.jobs)
	since, now := p.end.Sub(p.jobs[n-1].Arrived), n-p.at(p.end.Add(-lately))
	type instant struct {
		at  sched.Time
		off int // by how many jobs its past differs
	}
	list := make([]instant, 0, n)
	for i := range n - 1 {
		at := p.jobs[i].Arrived.Add(since)
		if next := p.jobs[i+1].Arrived; at >= next && next > p.jobs[i].Arrived {
			continue // someone had come by then
		}
		off := i + 1 - p.at(at.Add(-lately)) - now
		list = append(list, instant{at, max(off, -off)})
	}
	if len(list) == 0 {
		return p.from(r)
	}
	slices.SortStableFunc(list, func(a, b instant) int { return cmp.Compare(a.off, b.off) })
	return list[r.IntN(min(len(list), max(10, len(list)/10)))].at
}

// from draws the start of a stretch.
func (p *past) from(r *rand.Rand) sched.Time {
	if p.days >= 2 {
		return p.end.Add(-time.Duration(1+r.IntN(p.days)) * p.stretch)
	}
	return p.begin.Add(time.Duration(r.Float64() * float64(p.end.Sub(p.begin))))
}

// part is jobs [first, end) of a stretch, whose arrivals are to be later by shift.
type part struct {
	first, end int
	shift      time.Duration
}

// parts returns the jobs of the stretch that starts at from; behind the end comes the start.
func (p *past) parts(from sched.Time) []part {
	parts := []part{{p.at(from), p.at(from.Add(p.stretch)), 0}}
	if over := from.Add(p.stretch).Sub(p.end); over > 0 {
		parts = append(parts, part{0, p.at(p.begin.Add(over)), p.end.Sub(p.begin)})
	}
	return parts
}

// at returns the number of the first job that arrived at t or later.
func (p *past) at(t sched.Time) int {
	i, _ := slices.BinarySearchFunc(p.jobs, t, func(j sched.Job, t sched.Time) int {
		return cmp.Compare(j.Arrived, t)
	})
	return i
}
