package whatif

import (
	"slices"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

// bandSteps is into how many steps the time to come is cut.
const bandSteps = 60

// bands returns, over the time until the jobs of half the futures are done, how many GPUs the wanted jobs hold and how
// many of them wait. A job holds what it wants, or has, from its next start to its end: what is taken from it meanwhile
// is not seen.
func (l *look) bands(d *drawn) (busy, queue []explain.Band) {
	last := slices.Clone(d.last)
	slices.Sort(last)
	if len(last) == 0 {
		return nil, nil
	}
	now, step := l.v.Now, last[len(last)/2].Sub(l.v.Now)/bandSteps
	if step <= 0 {
		step = time.Second
	}
	held, waits := make([]float64, d.n), make([]float64, d.n)
	for i := range bandSteps + 1 {
		at := now.Add(time.Duration(i) * step)
		clear(held)
		clear(waits)
		for j := range d.jobs {
			if d.wanted[j] && l.v.Job(sched.JobID(j)).State != sched.Held { // one that is paused does neither
				l.standing(&d.jobs[j], sched.JobID(j), at, held, waits)
			}
		}
		busy, queue = append(busy, bandOf(at, held)), append(queue, bandOf(at, waits))
	}
	return busy, queue
}

// standing adds how a job stands at a time, by future.
func (l *look) standing(t *times, id sched.JobID, at sched.Time, held, waits []float64) {
	j := l.v.Job(id)
	width := float64(j.Spec.GPUs.Want)
	if n := len(j.Target); n > 0 {
		width = float64(n)
	}
	for k := range t.starts {
		switch ended := t.ends[k] != sched.Never && t.ends[k] <= at; {
		case ended:
		case t.starts[k] != sched.Never && t.starts[k] <= at:
			held[k] += width
		default:
			waits[k]++
		}
	}
}

func bandOf(at sched.Time, values []float64) explain.Band {
	sorted := slices.Sorted(slices.Values(values))
	rank := func(percent int) float64 { return sorted[(len(sorted)*percent+99)/100-1] }
	return explain.Band{At: at, P10: rank(10), P50: rank(50), P90: rank(90)}
}
