// Package metrics folds the log into figures: what happened to each job, what the cluster did, what it cost. A Recorder
// is an engine.Sink; it reads no clock and keeps one small record per job.
package metrics

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Job is what became of one job. Times are None where it did not come to pass.
type Job struct {
	Name        string
	GPUs        int32 // asked for
	Submit      sched.Time
	Start       sched.Time       // first start
	Finish      sched.Time       // end, however it came
	Run         time.Duration    // time with GPUs
	Service     sched.GPUSeconds // GPU time attained
	Energy      sched.Joules     // of its busy GPUs, beyond what idle nodes draw
	Preemptions int32            // targets taken away with none given in exchange
	Promotions  int32            // moves to a better queue after a long wait
	Migrations  int32            // to another set of the same size
	Resizes     int32            // to a set of another size
	Outcome     sched.Outcome    // NoOutcome = not done
}

// JCT is the completion time, finish less submit.
func (j *Job) JCT() time.Duration { return j.Finish.Sub(j.Submit) }

// Queue is the time without GPUs: JCT less run time.
func (j *Job) Queue() time.Duration { return j.JCT() - j.Run }

// Recorder folds the log. The zero value is ready to use.
type Recorder struct {
	Jobs   []Job  // by JobID
	Events uint64 // all of the log
	Undos  int    // targets on trial that were taken back

	misses int64 // done after their deadline
	lost   int64 // attempts that ended with their node
	now    sched.Time
	busy   int           // GPUs held by attempts
	usable int           // GPUs of nodes that are up
	active int           // nodes with a GPU held
	power  sched.Watts   // drawn at present
	price  sched.Dollars // per hour, of owned nodes
	before sched.Dollars // what pools had cost at the first arrival
	first  sched.Time
	any    bool
	sums   sums             // up to now
	closed sums             // up to end
	end    sched.Time       // of the last event about a job that was not done
	work   sched.GPUSeconds // GPU time in which work went on
	nodes  []nodeRecord
	held   [][]sched.GPUID
	from   []sched.Time // by job: since when its attempt works; Never = it does not
	since  []sched.Time // by job: since when its attempt holds its GPUs
}

// sums are what went on from the first arrival on.
type sums struct {
	busy, usable sched.GPUSeconds // integrals
	nodes        float64          // integral of active, in node-seconds
	energy       sched.Joules
	cost         sched.Dollars
	failures     int64 // nodes that went down
}

// NewRecorder returns a Recorder with room for so many jobs.
func NewRecorder(jobs int) *Recorder {
	return &Recorder{Jobs: make([]Job, 0, jobs), held: make([][]sched.GPUID, 0, jobs), from: make([]sched.Time, 0, jobs),
		since: make([]sched.Time, 0, jobs)}
}

// Log folds one event.
func (r *Recorder) Log(v *sched.View, e *sched.Event) {
	r.Events++
	if e.Time != r.now {
		r.advance(e.Time)
	}
	if r.concernsJob(e) { // before the fold: this event may be its last
		r.closed, r.end = r.sums, r.now
		if len(v.Pools) > 0 {
			r.closed.cost += spent(v) - r.before
		}
	}
	switch e.Kind {
	case sched.JobArrived:
		r.arrived(v, e)
	case sched.Ordered:
		switch sched.ActionKind(e.Code) {
		case sched.Start:
			r.hold(v, e.Job)
		case sched.Stop:
			r.stopWork(e.Job, e.Time)
		}
	case sched.AttemptStarted:
		if v.Jobs[e.Job].Attempt == sched.Running { // one that comes up while it is stopped does no work
			r.from[e.Job] = e.WorkFrom
		}
	case sched.AttemptEnded, sched.StartFailed:
		if e.Kind == sched.AttemptEnded && e.Outcome == sched.NodeLost {
			r.lost++
		}
		r.drop(v, e)
		r.update(v, e)
	case sched.Decided, sched.Rejected, sched.JobCommanded:
		r.update(v, e)
	case sched.Noted:
		if e.Why.Code == sched.WhyPromoted {
			r.Jobs[e.Job].Promotions++
		}
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged:
		if r.any && e.Kind == sched.NodeLeft && e.Code == int32(sched.NodeDown) {
			r.sums.failures++
		}
		r.node(v, e.Node)
	}
}

// advance adds up what went on since the last event.
func (r *Recorder) advance(now sched.Time) {
	dt := now.Sub(r.now)
	r.now = now
	if dt <= 0 || !r.any {
		return
	}
	s := dt.Seconds()
	r.sums.busy += sched.GPUTime(r.busy, dt)
	r.sums.usable += sched.GPUTime(r.usable, dt)
	r.sums.nodes += float64(r.active) * s
	r.sums.energy += sched.Joules(float64(r.power) * s)
	r.sums.cost += r.price * sched.Dollars(s/3600)
}

// concernsJob reports whether e is about a job that is not done: as long as such events come, time counts. What nodes and
// prices do afterwards is no part of the run.
func (r *Recorder) concernsJob(e *sched.Event) bool {
	switch e.Kind {
	case sched.JobArrived:
		return true
	case sched.AttemptEnded, sched.AttemptStarted, sched.StartFailed, sched.Progressed, sched.EpochEnded, sched.JobCommanded,
		sched.Decided, sched.Ordered, sched.Rejected, sched.Noted, sched.Released:
		return e.Job != sched.None && r.Jobs[e.Job].Outcome == sched.NoOutcome
	}
	return false
}

func (r *Recorder) arrived(v *sched.View, e *sched.Event) {
	spec := e.Spec
	r.Jobs = append(r.Jobs, Job{Name: spec.Name, GPUs: spec.GPUs.Want, Submit: e.Time, Start: sched.None, Finish: sched.None})
	r.held = append(r.held, nil)
	r.from = append(r.from, sched.Never)
	r.since = append(r.since, e.Time)
	if !r.any {
		r.any, r.first, r.now, r.before = true, e.Time, e.Time, spent(v)
		r.closed = sums{}
	}
}

// hold notes that the attempt of job id takes its devices.
func (r *Recorder) hold(v *sched.View, id sched.JobID) {
	set := v.Jobs[id].GPUs
	r.since[id] = v.Now
	r.held[id] = append(r.held[id][:0], set...)
	r.count(v, set, 1)
}

func (r *Recorder) drop(v *sched.View, e *sched.Event) {
	id := e.Job
	r.stopWork(id, e.Time)
	for _, g := range r.held[id] { // what its GPUs drew beyond the idle node; the rest is nobody's
		r.Jobs[id].Energy += sched.Joules(float64(v.Nodes[v.GPUs[g].Node].Spec.BusyGPUW) * e.Time.Sub(r.since[id]).Seconds())
	}
	r.count(v, r.held[id], -1)
	r.held[id] = r.held[id][:0]
}

// stopWork notes that the attempt of job id, if it has one, works no longer.
func (r *Recorder) stopWork(id sched.JobID, now sched.Time) {
	if now > r.from[id] {
		r.work += sched.GPUTime(len(r.held[id]), now.Sub(r.from[id]))
	}
	r.from[id] = sched.Never
}

// count adds d attempts to each GPU of set.
func (r *Recorder) count(v *sched.View, set []sched.GPUID, d int32) {
	for _, g := range set {
		n := v.GPUs[g].Node
		spec, rec := &v.Nodes[n].Spec, &r.nodes[n]
		was := rec.busy
		rec.busy += d
		if (was == 0) != (rec.busy == 0) {
			r.active += int(d)
		}
		r.busy += int(d)
		r.power += spec.BusyGPUW * sched.Watts(d)
	}
}

// update copies what the engine counts about a job, and closes the record of one that is done.
func (r *Recorder) update(v *sched.View, e *sched.Event) {
	j, rec := &v.Jobs[e.Job], &r.Jobs[e.Job]
	rec.Preemptions, rec.Migrations, rec.Resizes = j.Preemptions, j.Migrations, j.Resizes
	rec.Run, rec.Service, rec.Start = j.Run, j.Service, j.FirstStart
	if j.State == sched.Done && rec.Outcome == sched.NoOutcome {
		rec.Outcome, rec.Finish = j.Outcome, j.End
		if d := j.Spec.Deadline; d > 0 && j.End > d {
			r.misses++
		}
	}
}

// spent returns what all pools have cost so far.
func spent(v *sched.View) (sum sched.Dollars) {
	for i := range v.Pools {
		sum += v.Pools[i].SpentNow(v.Now)
	}
	return sum
}

// nodeRecord is what a node adds to the sums at present.
type nodeRecord struct {
	busy  int32 // GPUs held by attempts
	gpus  int
	power sched.Watts
	price sched.Dollars
}

// node exchanges what node n adds to the sums when it comes, goes or changes. A node is paid for, and draws its idle
// power, while it is up or draining; asleep it draws its sleep power and costs what it costs.
// What a rented one costs is counted by its pool.
func (r *Recorder) node(v *sched.View, n sched.NodeID) {
	for int(n) >= len(r.nodes) {
		r.nodes = append(r.nodes, nodeRecord{})
	}
	spec, rec := &v.Nodes[n].Spec, &r.nodes[n]
	now := nodeRecord{busy: rec.busy}
	switch v.Nodes[n].State {
	case sched.NodeUp, sched.NodeDraining:
		now.gpus, now.power, now.price = spec.GPUs, spec.IdleW, spec.DollarsHr
	case sched.NodeAsleep:
		now.power, now.price = spec.SleepW, spec.DollarsHr
	}
	if v.PoolOf(&v.Nodes[n]) != nil {
		now.price = 0
	}
	r.usable += now.gpus - rec.gpus
	r.power += now.power - rec.power
	r.price += now.price - rec.price
	*rec = now
}
