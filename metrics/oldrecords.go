package metrics

import "github.com/trainyard/trainyard/sched"

// old is where a Recorder keeps Jobs, where those that are done are to take few bytes.
type old struct {
	view  *sched.View // that events are about: it knows of a job that is done what its record would say
	place []int32     // by job: its place in live, from 1; 0 = the View has it, or other
	live  []*Job      // those that are not done
	spare []int32     // places that are free
	drawn []drawn     // by job: of those that are done; none behind the end
	other map[sched.JobID]Job
}

// drawn is what was measured of a job.
type drawn struct {
	energy sched.Joules
	inUse  sched.GPUSeconds
	peakGB float32
}

// NewCompact returns a Recorder that keeps what is done in few bytes. Its Jobs are empty: All has them.
func NewCompact() *Recorder { return &Recorder{old: new(old)} }

// add appends the next job.
func (o *old) add(j Job) {
	o.place = append(o.place, 0)
	*o.put(sched.JobID(len(o.place) - 1)) = j
}

// put makes room for the record of a job, as of one that is not done.
func (o *old) put(id sched.JobID) *Job {
	if n := len(o.spare); n > 0 {
		o.place[id], o.spare = o.spare[n-1], o.spare[:n-1]
	} else {
		o.live = append(o.live, nil)
		o.place[id] = int32(len(o.live))
	}
	x := new(Job)
	o.live[o.place[id]-1] = x
	return x
}

// of returns the record of a job. It holds as long as the job is not forgotten.
func (o *old) of(id sched.JobID) *Job {
	if at := o.place[id]; at > 0 {
		return o.live[at-1]
	}
	rec := o.done(id)
	delete(o.other, id)
	x := o.put(id)
	*x = rec
	return x
}

// heard drops the record of the job of an event from the live ones, if it is done and holds nothing.
func (o *old) heard(e *sched.Event, held *holdings) {
	if e.Kind.Form().Job == sched.NotNamed || e.Job < 0 || int(e.Job) >= len(o.place) {
		return
	}
	if at := o.place[e.Job]; at > 0 && o.live[at-1].Outcome != sched.NoOutcome && held.of(e.Job) == nil {
		o.forget(e.Job)
	}
}

// done returns the record of a job that is not among the live ones.
func (o *old) done(id sched.JobID) Job {
	if rec, is := o.other[id]; is {
		return rec
	}
	rec := recorded(&o.view.Jobs[id])
	if int(id) < len(o.drawn) {
		x := &o.drawn[id]
		rec.Energy, rec.InUse, rec.PeakGB = x.energy, x.inUse, x.peakGB
	}
	return rec
}

// forget drops the record of a job that is done from the live ones.
func (o *old) forget(id sched.JobID) {
	at := o.place[id]
	rec := *o.live[at-1]
	o.live[at-1] = nil
	o.place[id], o.spare = 0, append(o.spare, at)
	x := drawn{rec.Energy, rec.InUse, rec.PeakGB}
	if x != (drawn{}) {
		for int(id) >= len(o.drawn) {
			o.drawn = append(o.drawn, drawn{})
		}
	}
	if int(id) < len(o.drawn) {
		o.drawn[id] = x
	}
	if o.done(id) != rec {
		if o.other == nil {
			o.other = make(map[sched.JobID]Job)
		}
		o.other[id] = rec
	}
}

// recorded returns the record of a job that is done as the View knows it, without what was measured.
func recorded(j *sched.Job) Job {
	return Job{Name: j.Spec.Name, GPUs: j.Unit(), Submit: j.Arrived, Start: j.FirstStart, Finish: j.End, Run: j.Run,
		Service: j.Service, Lost: sched.GPUTime(int(j.Unit()), j.Loss().Work), Preemptions: j.Preemptions,
		Migrations: j.Migrations, Resizes: j.Resizes, Outcome: j.Outcome}
}

// record returns that of a job.
func (r *Recorder) record(id sched.JobID) *Job {
	if r.old != nil {
		return r.old.of(id)
	}
	return &r.Jobs[id]
}

// over reports whether job id is done and nothing is open of it.
func (r *Recorder) over(id sched.JobID) bool {
	if r.old != nil && r.old.place[id] == 0 {
		return true
	}
	return r.record(id).Outcome != sched.NoOutcome
}

// All returns the records of all jobs, by JobID; those of a Recorder that is not compact must not be changed.
func (r *Recorder) All() []Job {
	if r.old == nil {
		return r.Jobs
	}
	list := make([]Job, len(r.old.place))
	for i := range list {
		if at := r.old.place[i]; at > 0 {
			list[i] = *r.old.live[at-1]
		} else {
			list[i] = r.old.done(sched.JobID(i))
		}
	}
	return list
}

// Of returns the record of a job, as in All; that of no job where it is not known. What it has drawn while it runs is
// up to the latest Settle or Result.
func (r *Recorder) Of(id sched.JobID) Job {
	switch {
	case r.old == nil && int(id) < len(r.Jobs):
		return r.Jobs[id]
	case r.old == nil || int(id) >= len(r.old.place):
		return Job{}
	case r.old.place[id] > 0:
		return *r.old.live[r.old.place[id]-1]
	}
	return r.old.done(id)
}

// Settle has all jobs answer for the energy of their nodes up to the last event about a job that was not done, and
// returns that of all nodes in kWh.
func (r *Recorder) Settle() (kWh float64) {
	r.settle(r.end)
	return r.closed.energy.all() / joules
}
