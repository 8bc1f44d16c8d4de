package remaining

import (
	"math"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Estimator estimates the remaining work of jobs, as time on the GPUs they asked for, alone. Of a job that has done a
// it says, the first that applies:
//
//   - what the job says: the steps it has left (Progressed, Code), each as long as those it has done took on average;
//   - by its class, if Enough jobs of it finished that stated a wall time, and it states one: their work over the
//     stated time is taken for its own;
//   - by its class, if Enough jobs of it finished: their work is taken for its own;
//   - by the jobs of all classes that stated a wall time, if there are Enough and it states one, as above;
//   - the wall time that it states, less a;
//   - by the jobs of all classes, if any finished;
//   - an hour, or as long again as so far, whichever is longer.
//
// The class of a job is its Class, else its Model, else its User, else that of all jobs. A stated wall time is an upper
// bound that people exaggerate: no estimate is beyond it, as long as the job is not. Beyond the longest that finished a
// job is taken to last as long again as so far.
//
// What is learned of: the work of jobs as of their end, or the time that their last attempt took where they report
// none. Jobs that failed or were cancelled do not count, nor do those that still run: at first a class looks shorter
// than it is.
//
// Its memory is bounded: Window works of each of MaxClasses classes, those of which a job finished last. It is one
// number for each job that reports its steps, until it is done. New is the only way to one.
type Estimator struct {
	sched.ByName

	classes  map[class]*sample
	all      sample
	whole    []time.Duration // by JobID: work in all as its steps say; 0 = they do not
	revision uint64
	met      bool // the jobs that were done before it heard of anything
}

// Limits of what is learned. Ours, but for Enough, which is the specification's "about 5".
const (
	Enough     = 5
	MaxClasses = 1024
	Unknown    = time.Hour // the work of a job of which nothing is known, until it lasts longer
)

// longest keeps estimates in 64 bits.
const longest = 100 * 365 * 24 * time.Hour

// class says which jobs learn from each other.
type class struct {
	by   by
	name string
}

type by uint8

const (
	byAll by = iota
	byClass
	byModel
	byUser
)

// sample is what is known of a class.
type sample struct {
	works    window // in seconds
	ratios   window // work over stated wall time, of those that stated one
	reported int64  // value of works.seen when the revision last rose for it
	last     int64  // number of the job that finished last, among all
}

// New returns an Estimator that has seen nothing.
func New() *Estimator { return &Estimator{classes: make(map[class]*sample)} }

var (
	_ sched.Remainer = (*Estimator)(nil)
	_ sched.Observer = (*Estimator)(nil)
	_ sched.Reviser  = (*Estimator)(nil)
	_ sched.Memory   = (*Estimator)(nil)
)

// Observe learns from jobs that finish, and from those that report their steps; at first from those that the view shows
// to have finished before.
func (e *Estimator) Observe(v *sched.View, ev *sched.Event) {
	if !e.met {
		e.meet(v, ev)
	}
	switch ev.Kind {
	case sched.Progressed:
		e.steps(ev)
	case sched.AttemptEnded:
		j := &v.Jobs[ev.Job]
		if j.State == sched.Done && int(ev.Job) < len(e.whole) {
			e.whole[ev.Job] = 0
		}
		if ev.Outcome != sched.Finished {
			return
		}
		work := ev.Work
		if work <= 0 && j.LastStart >= 0 {
			work = ev.Happened().Sub(j.LastStart)
		}
		if work > 0 {
			e.finished(j.Spec, work.Seconds())
		}
	}
}

// meet takes over what the view shows but the job of the event: a system may start where another has left off.
func (e *Estimator) meet(v *sched.View, ev *sched.Event) {
	e.met = true
	for id := range v.Jobs {
		j := &v.Jobs[id]
		if j.Outcome != sched.Finished || ev.Kind == sched.AttemptEnded && ev.Job == sched.JobID(id) {
			continue
		}
		work := j.Work
		if work <= 0 {
			work = j.Run
		}
		if work > 0 {
			e.finished(j.Spec, work.Seconds())
		}
	}
}

// steps notes how much work a job is in all, by what it reports of its steps.
func (e *Estimator) steps(ev *sched.Event) {
	whole := 0.
	if ev.Code > 0 && ev.Value > 0 && ev.Work > 0 {
		whole = ev.Work.Seconds() * max(float64(ev.Code)/ev.Value, 1)
	}
	if whole == 0 && int(ev.Job) >= len(e.whole) {
		return
	}
	for int(ev.Job) >= len(e.whole) {
		e.whole = append(e.whole, 0)
	}
	e.whole[ev.Job] = duration(whole)
}

// finished adds a work, in seconds, to its class and to all.
func (e *Estimator) finished(spec *sched.JobSpec, work float64) {
	number := e.all.works.seen
	of := []*sample{&e.all}
	if k := classOf(spec); k.by != byAll {
		if e.classes[k] == nil {
			e.makeRoom()
			e.classes[k] = &sample{}
		}
		of = append(of, e.classes[k])
	}
	for _, s := range of {
		s.last = number
		s.works.add(work)
		if spec.WallTime > 0 {
			s.ratios.add(work / spec.WallTime.Seconds())
		}
		if s.works.seen >= s.reported+max(s.reported/revise, 1) {
			s.reported = s.works.seen
			e.revision++
		}
	}
}

// revise has estimates asked for again when a sample has grown by an eighth, as that of package dist.
const revise = 8

// makeRoom forgets the class of which no job has finished for the longest, if there are as many as may be.
func (e *Estimator) makeRoom() {
	if len(e.classes) < MaxClasses {
		return
	}
	oldest, last := class{}, int64(math.MaxInt64)
	for k, s := range e.classes { // no two have the same last
		if s.last < last {
			oldest, last = k, s.last
		}
	}
	delete(e.classes, oldest)
}

func classOf(spec *sched.JobSpec) class {
	switch {
	case spec.Class != "":
		return class{byClass, spec.Class}
	case spec.Model != "":
		return class{byModel, spec.Model}
	case spec.User != "":
		return class{byUser, spec.User}
	}
	return class{}
}

// basis is what an estimate is made from: a sample in some unit, of which a job has done so much.
type basis struct {
	sample *window // nil = none applies
	unit   float64 // in seconds
	done   float64 // in seconds
	most   float64 // left at most, in seconds, as stated; +Inf = nothing is, or it is passed
}

// basis returns what is to be asked about job j, which reports no steps.
func (e *Estimator) basis(v *sched.View, j sched.JobID) basis {
	job := &v.Jobs[j]
	b := basis{unit: 1, done: max(job.WorkNow(v.Now), 0).Seconds(), most: math.Inf(1)}
	wall := job.Spec.WallTime.Seconds()
	if wall > b.done {
		b.most = wall - b.done
	}
	s := e.classes[classOf(job.Spec)]
	if s == nil {
		s = &sample{}
	}
	switch {
	case wall > 0 && len(s.ratios.ring) >= Enough:
		b.sample, b.unit = &s.ratios, wall
	case len(s.works.ring) >= Enough:
		b.sample = &s.works
	case wall > 0 && len(e.all.ratios.ring) >= Enough:
		b.sample, b.unit = &e.all.ratios, wall
	case b.most < math.Inf(1):
	case len(e.all.works.ring) > 0:
		b.sample = &e.all.works
	}
	return b
}

// said returns what is left by the steps that job j reports.
func (e *Estimator) reported(v *sched.View, j sched.JobID) (left time.Duration, ok bool) {
	if int(j) >= len(e.whole) || e.whole[j] == 0 {
		return 0, false
	}
	return max(e.whole[j]-v.Jobs[j].WorkNow(v.Now), 0), true
}

// Sure reports whether Remaining of job j follows from what the job itself reports.
func (e *Estimator) Sure(v *sched.View, j sched.JobID) bool {
	_, ok := e.reported(v, j)
	return ok
}

// Remaining returns the work that job j is expected to have left, >= 0.
func (e *Estimator) Remaining(v *sched.View, j sched.JobID) time.Duration {
	if left, ok := e.reported(v, j); ok {
		return left
	}
	b := e.basis(v, j)
	switch {
	case b.sample != nil:
		return duration(min(b.sample.left(b.done/b.unit)*b.unit, b.most))
	case b.most < math.Inf(1):
		return duration(b.most)
	}
	return duration(max(b.done, Unknown.Seconds()))
}

// Until returns when to ask again about a job to which nothing happens. As it goes on what is expected falls by what it
// does, as far as it reports its steps; else not: it is looked at again when an eighth of it has gone by, but no more
// than once a minute.
func (e *Estimator) Until(v *sched.View, j sched.JobID) sched.Time {
	if v.Jobs[j].Attempt != sched.Running {
		return sched.Never
	}
	if _, ok := e.reported(v, j); ok {
		return sched.Never
	}
	return v.Now.Add(max(e.Remaining(v, j)/revise, time.Minute))
}

// Revision rises when so much was learned that all estimates may have changed.
func (e *Estimator) Revision() uint64 { return e.revision }

// duration converts seconds >= 0, at most longest.
func duration(s float64) time.Duration { return sched.Seconds(min(s, longest.Seconds())) }
