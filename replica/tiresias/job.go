package tiresias

// job is a Job and its progress. Its clocks, in seconds, stand as they were at since: they are brought up to date when
// the job starts, stops, is promoted or leaves, not at each pass.
type job struct {
	// Read at each pass while it runs.
	limitAt  int64 // when it reaches the limit of its queue
	jumpFrom int64 // no later than demotionAt, which never falls while the job runs
	endAt    int64 // when it ends

	since    int64
	left     int64 // time to run until it ends
	executed int64 // time run since the last promotion
	waited   int64 // time waited since the last promotion, counted only after it has run

	Job
	running   bool
	queue     int
	place     int     // in the order of arrival
	promoteAt int64   // while it waits in run.patient
	rank      float64 // Gittins index, larger first; while the job runs, as it was when last looked at
	rankTo    int64   // service, in GPU-seconds, up to which rank is valid
	Outcome
}

// settle brings the clocks up to now.
func (j *job) settle(now int64) {
	dt := now - j.since
	j.since = now
	if j.running {
		j.left -= dt
		j.executed += dt
		return
	}
	j.Pending += dt
	if j.executed > 0 {
		j.waited += dt
	}
}

// executedAt is executed as it is at now, of a job that runs or is settled by now.
func (j *job) executedAt(now int64) int64 { return j.executed + now - j.since }

// service is what the Gittins index depends on, in GPU-seconds.
func (j *job) service(now int64) int64 { return j.executedAt(now) * int64(j.GPUs) }

func (r *run) start(j *job) {
	j.settle(r.now)
	j.running = true
	if j.Start < 0 {
		j.Start = r.now
	}
	j.endAt, j.jumpFrom = r.now+j.left, r.now
	j.limitAt = r.reachesLimit(j)
}

// stop takes the GPUs of j away. Whether that is a preemption or the job starts again in the same pass, the caller
// knows.
func (r *run) stop(j *job) {
	j.settle(r.now)
	j.running = false
	if r.promotes() && j.queue > 0 && j.executed > 0 {
		j.promoteAt = r.now + r.patience(j) - j.waited
		r.patient = append(r.patient, j)
	}
}

// patience is the waiting time, in seconds, after which j is promoted.
func (r *run) patience(j *job) int64 {
	if s := float64(j.executed) * r.Knob; s < maxService {
		return int64(s)
	}
	return maxService
}

func (r *run) demotable(j *job) bool { return j.queue < len(r.Limits) }

// width turns seconds into the unit of the limits: 1 for dlas, GPUs otherwise.
func (r *run) width(j *job) int64 {
	if r.Seconds {
		return 1
	}
	return int64(j.GPUs)
}

// reachesLimit is when the running job j has received the service that demotes it.
func (r *run) reachesLimit(j *job) int64 {
	if !r.demotable(j) {
		return never
	}
	w := r.width(j)
	return j.since - j.executed + (r.Limits[j.queue]+w-1)/w
}

// demotionAt is when the released simulator looks again whether j, which runs, has reached its limit. It takes seconds
// from GPU-seconds; right would be ceil(limit/width) − executed. The result is exact for width 1 or a job that has not
// run yet, else late, or too early by the rounding down.
//
// Deviation: for a job below its limit a result of now would repeat this pass for ever, so it is one second later. A
// job at or above the limit of its new queue does fall again at now, as released.
func (r *run) demotionAt(j *job) int64 {
	if !r.demotable(j) {
		return never
	}
	limit := r.Limits[j.queue]
	at := r.now + (limit-j.executedAt(r.now))/r.width(j)
	if at <= r.now && r.now < j.limitAt {
		return r.now + 1
	}
	return at
}
