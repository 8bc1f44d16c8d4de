package metrics

import "github.com/trainyard/trainyard/sched"

// usage is how much of its GPUs was in use as last measured.
type usage struct {
	of    float64    // whoever used them, 0..1
	own   float64    // GPUs that the job itself uses
	since sched.Time // up to when that is booked
}

// measuredJob takes what was measured of the GPUs of a job, and of its own memory there.
func measuredJob(r *Recorder, v *sched.View, e *sched.Event) {
	rec := r.record(e.Job)
	rec.PeakGB = max(rec.PeakGB, e.MemGB)
	book(r, e.Job, e.Time)
	if r.held.of(e.Job) == nil {
		return
	}
	if r.meter.used == nil {
		r.meter.used = make(map[sched.JobID]usage)
	}
	r.meter.used[e.Job] = usage{of: e.Rate, since: e.Time}
	reshare(r, v, e.Job)
}

// book has a job answer for what it has used up to now, since that was last measured or booked.
func book(r *Recorder, id sched.JobID, now sched.Time) {
	if u, measured := r.meter.used[id]; measured && now > u.since {
		r.record(id).InUse += sched.GPUSeconds(u.own * now.Sub(u.since).Seconds())
		u.since = now
		r.meter.used[id] = u
	}
}

// reshare says how much of its GPUs a job uses from now on: of each its part, by the use that its tenants make of one
// alone.
func reshare(r *Recorder, v *sched.View, id sched.JobID) {
	if u, measured := r.meter.used[id]; measured {
		book(r, id, r.now)
		u = r.meter.used[id]
		u.own = u.of * partOf(r, v, id, r.held.set(id))
		r.meter.used[id] = u
	}
}

// reshareAll does so for all tenants of some GPUs, which others have left or come to.
func reshareAll(r *Recorder, v *sched.View, set []sched.GPUID) {
	if len(r.meter.used) == 0 || !r.each {
		return
	}
	for _, g := range set {
		for _, o := range r.on[g] {
			reshare(r, v, o)
		}
	}
}

// partOf returns how many of some GPUs are a job's own by the use that its tenants make of them.
func partOf(r *Recorder, v *sched.View, id sched.JobID, set []sched.GPUID) (gpus float64) {
	if !r.each {
		return float64(len(set))
	}
	own := useOf(v.Jobs[id].Spec)
	for _, g := range set {
		all := 0.0
		for _, o := range r.on[g] {
			all += useOf(v.Jobs[o].Spec)
		}
		gpus += own / all
	}
	return gpus
}
