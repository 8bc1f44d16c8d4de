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

// enoughSubmissions is how many there must have been to say how others come: of fewer there is no rate.
const enoughSubmissions = 10

// submission is what came together, by one submit or one script: jobs [first, end), from at on.
type submission struct {
	at         sched.Time
	first, end int
}

// script is within what time of the one before it a job of the same user comes by the same hand: a loop in a shell
// submits one job after the other. Ours.
const script = time.Second

// submissions returns those of jobs, which are in order of arrival: jobs that arrived at one instant are one, and so
// are those that a user submitted in a row, each within script of the one before it.
func submissions(jobs []sched.Job) (list []submission) {
	for i := range jobs {
		j := &jobs[i]
		if i > 0 {
			before := &jobs[i-1]
			gap, same := j.Arrived.Sub(before.Arrived), j.Spec.User != "" && j.Spec.User == before.Spec.User
			if gap <= 0 || same && gap <= script {
				list[len(list)-1].end = i + 1
				continue
			}
		}
		list = append(list, submission{j.Arrived, i, i + 1})
	}
	return list
}

// past is what was submitted before a moment, to be cut into stretches.
type past struct {
	jobs       []sched.Job
	came       []submission
	begin, end sched.Time
	stretch    time.Duration
	days       int // whole ones; fewer than 2 = the hours do not matter
}

// pastOf returns that of v; nil if it says nothing of how others come.
func pastOf(v *sched.View) *past {
	const day = 24 * time.Hour
	p := &past{jobs: v.Jobs, came: submissions(v.Jobs), end: v.Now}
	if len(p.came) < enoughSubmissions || p.span() <= 0 {
		return nil
	}
	p.begin = p.came[0].at
	if p.days = int(p.span() / day); p.days >= 2 {
		p.stretch = day
	} else {
		p.stretch = p.span()/4 + 1
	}
	return p
}

// span is how long the past is, from the first submission on. No one knows how others come beyond as long again.
func (p *past) span() time.Duration { return p.end.Sub(p.came[0].at) }

// others returns jobs that others submit after the past, as they did in it, for as long as it lasted and no later than
// until: stretches of it come again, one after another, with all submissions in them. So submissions come in bursts,
// and bring as many jobs, as they did before, and where the past has two days, at the hours at which they came. work is
// that of each job of the past in all, of those that are not done as drawn; 0 = it never ran. What is drawn depends on
// r alone.
//
// Source: the moving-block bootstrap (Kuensch, 1989), of days, or of quarters of a shorter past, which is taken for a
// circle.
func (p *past) others(work []time.Duration, until sched.Time, r *rand.Rand) (list []trace.Job) {
	if p == nil {
		return nil
	}
	until = min(until, p.end.Add(p.span()))
	at, from := p.end, p.like(r)
	for range mostOthers { // stretches: one may be empty
		if at >= until || len(list) == mostOthers {
			break
		}
		for _, part := range p.parts(from) {
			for s := part.first; s < part.end; s++ {
				list = p.again(list, &p.came[s], at.Add(part.shift).Sub(from), work, until)
			}
		}
		at, from = at.Add(p.stretch), p.from(r)
	}
	slices.SortStableFunc(list, func(a, b trace.Job) int { return cmp.Compare(a.Spec.Submit, b.Spec.Submit) })
	return list
}

// again appends the jobs of a submission, later by so much.
func (p *past) again(list []trace.Job, s *submission, later time.Duration, work []time.Duration,
	until sched.Time) []trace.Job {
	for i := s.first; i < s.end && len(list) < mostOthers; i++ {
		spec := *p.jobs[i].Spec
		spec.Submit = p.jobs[i].Arrived.Add(later)
		if work[i] <= 0 || spec.Submit >= until {
			continue
		}
		spec.Name, spec.After, spec.NotBef, spec.Deadline = fmt.Sprint("later", len(list)), nil, 0, 0
		spec.Ties.AfterOK, spec.Ties.AfterFail = nil, nil // of jobs of After
		list = append(list, trace.Job{Spec: spec, Duration: AsWanted(&p.jobs[i], work[i])})
	}
	return list
}

// lately is how far back the past is compared with the moment, to say whether a burst goes on.
const lately = 10 * time.Minute

// like draws the start of the first stretch: an instant as long after a submission as the moment is after the last, one
// of the tenth of them, or ten, before which about as many had come lately. After the last submission of a burst there
// comes a burst's next more often than at any other time.
//
// Source: analogues (Lorenz, 1969).
func (p *past) like(r *rand.Rand) sched.Time {
	n := len(p.came)
	since, now := p.end.Sub(p.last(n-1)), n-p.at(p.end.Add(-lately))
	type instant struct {
		at  sched.Time
		off int // by how many submissions its past differs
	}
	list := make([]instant, 0, n)
	for i := range n - 1 {
		at := p.last(i).Add(since)
		if at >= p.came[i+1].at {
			continue // someone had come by then
		}
		off := i + 1 - p.at(at.Add(-lately)) - now
		list = append(list, instant{at, max(off, -off)})
	}
	if len(list) == 0 {
		return p.from(r)
	}
	slices.SortStableFunc(list, func(a, b instant) int { return cmp.Compare(a.off, b.off) })
	// behind what had come by then: the next is as far away as it was
	return list[r.IntN(min(len(list), max(10, len(list)/10)))].at + 1
}

// last returns when the last job of submission s came.
func (p *past) last(s int) sched.Time { return p.jobs[p.came[s].end-1].Arrived }

// from draws the start of a stretch.
func (p *past) from(r *rand.Rand) sched.Time {
	if p.days >= 2 {
		return p.end.Add(-time.Duration(1+r.IntN(p.days)) * p.stretch)
	}
	return p.begin.Add(time.Duration(r.Float64() * float64(p.end.Sub(p.begin))))
}

// part are submissions [first, end) of a stretch, which are to come later by shift.
type part struct {
	first, end int
	shift      time.Duration
}

// parts returns the submissions of the stretch that starts at from; behind the end comes the start.
func (p *past) parts(from sched.Time) []part {
	parts := []part{{p.at(from), p.at(from.Add(p.stretch)), 0}}
	if over := from.Add(p.stretch).Sub(p.end); over > 0 {
		parts = append(parts, part{0, p.at(p.begin.Add(over)), p.end.Sub(p.begin)})
	}
	return parts
}

// at returns the number of the first submission that came at t or later.
func (p *past) at(t sched.Time) int {
	i, _ := slices.BinarySearchFunc(p.came, t, func(s submission, t sched.Time) int { return cmp.Compare(s.at, t) })
	return i
}
