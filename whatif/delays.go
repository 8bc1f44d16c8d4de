package whatif

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// Delays is a sink that measures what attempts cost besides the work that they do: how long they take from the order
// until they are up, and until they are gone, and what of the time that they are up comes to nothing. The zero value is
// ready to use; it has to hear the whole log, the part that is replayed included.
type Delays struct {
	// Forgets: of jobs that are done their mean alone is kept. StartUp and Says are of others then.
	Forgets bool

	ordered map[order]sched.Time
	starts  latest
	stops   latest
	jobs    map[sched.JobID]*usage
	done    int           // jobs that were forgotten and had been up
	cost    time.Duration // the sum of StartUp of those
}

var _ eventlog.Sink = (*Delays)(nil)

// order names what an attempt was asked to do.
type order struct {
	job     sched.JobID
	attempt int32
	what    sched.ActionKind
}

// latest are durations as seen, of which the last so many are kept.
type latest []time.Duration

const keptDelays = 1000

func (l *latest) add(d time.Duration) {
	if len(*l) >= keptDelays {
		*l = slices.Delete(*l, 0, 1)
	}
	*l = append(*l, max(d, 0))
}

// usage is what a job made of the time that its attempts were up.
type usage struct {
	starts int
	up     bool
	since  sched.Time    // counted up to here
	speed  float64       // of the attempt: its GPUs over those asked for
	ran    time.Duration // counted
	could  time.Duration // work in that time, had there been nothing else
	says   bool          // it reports its work
	idle   time.Duration // of the time up to its last report, that in which it did nothing that lasted
}

// Log notes orders and their answers, and reports of work.
func (d *Delays) Log(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.Ordered:
		if what := sched.ActionKind(e.Code); what == sched.Start || what == sched.Stop {
			if d.ordered == nil {
				d.ordered = make(map[order]sched.Time)
			}
			d.ordered[order{e.Job, e.Attempt, what}] = e.Time
		}
	case sched.AttemptStarted:
		d.answered(e, sched.Start, &d.starts)
		u := d.of(e.Job)
		u.starts++
		u.up, u.since, u.speed = true, e.Happened(), float64(len(v.Job(e.Job).GPUs))/float64(v.Job(e.Job).Unit())
	case sched.Progressed:
		d.of(e.Job).count(e)
	case sched.AttemptEnded:
		d.answered(e, sched.Stop, &d.stops)
		delete(d.ordered, order{e.Job, e.Attempt, sched.Start})
		u := d.of(e.Job)
		u.count(e)
		u.up = false
	case sched.StartFailed:
		delete(d.ordered, order{e.Job, e.Attempt, sched.Start})
		delete(d.ordered, order{e.Job, e.Attempt, sched.Stop})
	}
	if d.Forgets && e.Kind.Form().Moves {
		d.forget(v, e.Job)
	}
}

// forget drops a job that is done.
func (d *Delays) forget(v *sched.View, id sched.JobID) {
	if d.jobs[id] == nil || v.Job(id).State != sched.Done {
		return
	}
	if cost, ok := d.StartUp(id); ok {
		d.cost += cost
		d.done++
	}
	delete(d.jobs, id)
}

// answered notes how long an order took that is carried out now.
func (d *Delays) answered(e *sched.Event, what sched.ActionKind, list *latest) {
	o := order{e.Job, e.Attempt, what}
	if at, ok := d.ordered[o]; ok {
		list.add(e.Happened().Sub(at))
		delete(d.ordered, o)
	}
}

func (d *Delays) of(j sched.JobID) *usage {
	if d.jobs == nil {
		d.jobs = make(map[sched.JobID]*usage)
	}
	if d.jobs[j] == nil {
		d.jobs[j] = new(usage)
	}
	return d.jobs[j]
}

// count notes what a job reports.
func (u *usage) count(e *sched.Event) {
	if !u.up {
		return
	}
	at := max(e.Happened(), u.since)
	u.ran += at.Sub(u.since)
	u.could += sched.ScaleDuration(at.Sub(u.since), u.speed)
	u.since = at
	if e.Work > 0 && u.could > 0 {
		u.says = true
		u.idle = sched.ScaleDuration(max(u.could-e.Work, 0), float64(u.ran)/float64(u.could))
	}
}

// StartUp returns what each start of a job has cost it on average: the time until it did its first work, and that of
// what it had to do again. 0 if it reports no work: then what it is in all has its
// start in it. ok is false if it has not been up.
func (d *Delays) StartUp(j sched.JobID) (cost time.Duration, ok bool) {
	u := d.jobs[j]
	if u == nil || u.starts == 0 {
		return 0, false
	}
	return u.idle / time.Duration(u.starts), true
}

// Says reports whether job j reports its work.
func (d *Delays) Says(j sched.JobID) bool { return d.jobs[j] != nil && d.jobs[j].says }

// Start returns how long it takes from the order until an attempt is up, by the median; 0 = never seen.
func (d *Delays) Start() time.Duration { return d.starts.median() }

// Stop returns how long it takes from the order until an attempt is gone, by the median; 0 = never seen.
func (d *Delays) Stop() time.Duration { return d.stops.median() }

// median returns the middle one, the lower of two; 0 of none.
func (l *latest) median() time.Duration {
	if len(*l) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(*l))
	return sorted[(len(sorted)-1)/2]
}

// Costs are delays as of a moment, for futures to be drawn from. The zero value costs nothing.
type Costs struct {
	starts, stops latest
	startUp       map[sched.JobID]time.Duration // of those that have been up and are not forgotten
	usual         time.Duration                 // of others
}

// Costs returns the delays as they are now. It keeps nothing of d.
func (d *Delays) Costs() *Costs {
	c := &Costs{starts: slices.Clone(d.starts), stops: slices.Clone(d.stops),
		startUp: make(map[sched.JobID]time.Duration, len(d.jobs))}
	sum := d.cost
	for j := range d.jobs {
		if cost, ok := d.StartUp(j); ok {
			c.startUp[j] = cost
			sum += cost
		}
	}
	c.usual = sum / time.Duration(max(len(c.startUp)+d.done, 1))
	return c
}

// of returns what a start costs job j.
func (c *Costs) of(j sched.JobID) time.Duration {
	if cost, ok := c.startUp[j]; ok {
		return cost
	}
	return c.usual
}

// runtime returns r in which starts and stops take what they took, as drawn.
func (c *Costs) runtime(run sim.Runtime, r *rand.Rand) sim.Runtime {
	if c == nil {
		return run
	}
	run.StartDelay, run.StopDelay = c.starts.resampled(r), c.stops.resampled(r)
	return run
}

// resampled returns the mean of a sample of l, with replacement; 0 of none.
func (l *latest) resampled(r *rand.Rand) time.Duration {
	const most = 30
	n, sum := min(len(*l), most), time.Duration(0)
	for range n {
		sum += (*l)[r.IntN(len(*l))]
	}
	return sum / time.Duration(max(n, 1))
}

// charge has each start of the jobs of a trace cost what it costs them; the first of them are those of the moment, and
// those that are planned, and the others' first start is part of their work.
func (c *Costs) charge(run *sim.Runtime, t *trace.Trace, known int) {
	if c == nil {
		return
	}
	of := make(map[*trace.Job]time.Duration, known)
	for i := range t.Jobs[:min(known, len(t.Jobs))] {
		of[&t.Jobs[i]] = c.of(sched.JobID(i))
	}
	run.RestartAtFirst = true
	run.RestartOf = func(j *trace.Job) time.Duration { return of[j] }
}
