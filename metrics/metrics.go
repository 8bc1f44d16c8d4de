// Package metrics folds the log into figures: what happened to each job, what the cluster did, what it cost. A Recorder
// is an eventlog.Sink; it reads no clock and keeps one small record per job.
package metrics

import (
	"slices"
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
	Energy      sched.Joules     // it answers for, see power.Node.Draw; of one that runs, up to the latest Result
	InUse       sched.GPUSeconds // of Service, in which it used its GPUs, as measured; of one that runs, as Energy
	PeakGB      float32          // most device memory measured of it on one GPU; 0 = unknown
	Lost        sched.GPUSeconds // GPU time that came to nothing by stops for others, see sched.Loss
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
	Energy Energy // set before the first event

	Jobs   []Job  // by JobID
	Events uint64 // all of the log
	Undos  int    // targets on trial that were taken back

	misses int64 // done after their deadline
	lost   int64 // attempts that ended with their node
	now    sched.Time
	busy   int // GPUs held by an attempt
	usable int // GPUs of nodes that are up
	active int // nodes with a GPU held
	meter  meter
	price  sched.Dollars // per hour, of owned nodes
	rent   rent
	first  sched.Time
	any    bool
	sums   sums             // up to now
	closed sums             // up to end
	end    sched.Time       // of the last event about a job that was not done
	work   sched.GPUSeconds // GPU time in which work went on
	nodes  []nodeRecord
	on     [][]sched.JobID // by GPUID: the jobs whose attempts hold it; kept if each
	each   bool            // GPUs are looked at one by one: some are shared, or draw power
	worked []sched.Time    // by GPUID: up to when work there is counted
	held   holdings
	old    *old // nil = Jobs has all
}

// sums are what went on from the first arrival on.
type sums struct {
	busy, usable sched.GPUSeconds // integrals
	nodes        float64          // integral of active, in node-seconds
	energy       draw             // J
	cost         sched.Dollars
	energyCost   float64
	carbon       float64 // grams
	failures     int64   // nodes that went down
}

// NewRecorder returns a Recorder with room for so many jobs.
func NewRecorder(jobs int) *Recorder {
	return &Recorder{Jobs: make([]Job, 0, jobs), held: holdings{place: make([]int32, 0, jobs)}}
}

// Log folds one event.
func (r *Recorder) Log(v *sched.View, e *sched.Event) {
	if r.old != nil {
		r.old.view = v
	}
	r.fold(v, e)
	if len(v.Pools) > 0 {
		r.rent.update(v)
	}
	if r.old != nil {
		r.old.heard(e, &r.held)
	}
}

func (r *Recorder) fold(v *sched.View, e *sched.Event) {
	r.Events++
	if e.Time != r.now {
		r.advance(e.Time)
	}
	if r.concernsJob(e) { // before the fold: this event may be its last
		r.close(v)
	}
	switch e.Kind {
	case sched.JobArrived:
		r.arrived(v, e)
	case sched.Ordered:
		r.ordered(v, e)
	case sched.AttemptStarted:
		if v.Jobs[e.Job].Attempt == sched.Running { // one that comes up while it is stopped does no work
			r.held.start(e)
		}
	case sched.AttemptEnded, sched.StartFailed:
		if e.Kind == sched.AttemptEnded && e.Outcome == sched.NodeLost {
			r.lost++
		}
		r.drop(v, e)
		r.update(v, e)
		r.lose(v, e.Job)
	case sched.Saved:
		r.lose(v, e.Job)
	case sched.Decided, sched.Rejected, sched.JobCommanded, sched.JobChanged:
		r.decided(v, e)
	case sched.Noted:
		if e.Why.Code == sched.WhyPromoted {
			r.record(e.Job).Promotions++
		}
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged, sched.PriceChanged, sched.Measured:
		r.logNode(v, e)
	}
}

// close closes the sums as of now.
func (r *Recorder) close(v *sched.View) {
	r.closed, r.end = r.sums, r.now
	if len(v.Pools) > 0 {
		r.closed.cost += spent(v) - r.rent.before
	}
}

// lose takes what a job has lost to others by now.
func (r *Recorder) lose(v *sched.View, id sched.JobID) {
	j := &v.Jobs[id]
	r.record(id).Lost = sched.GPUTime(int(j.Unit()), j.Loss().Work)
}

// ordered folds an order of the engine.
func (r *Recorder) ordered(v *sched.View, e *sched.Event) {
	switch sched.ActionKind(e.Code) {
	case sched.Start:
		r.hold(v, e.Job)
	case sched.Stop:
		r.stopWork(v, e.Job, e.Time)
	case sched.Adjust:
		r.adjusted(v, e.Job)
	case sched.SetNode:
		r.changed(v, e.Node)
	}
}

// decided folds what was decided about a job, by the system or its user.
func (r *Recorder) decided(v *sched.View, e *sched.Event) {
	if e.Kind == sched.Decided && e.Why.Code == sched.WhyUndone && e.Target.At == sched.AtOnce {
		r.Undos++ // an exchange at the end of an epoch is decided once more then
	}
	r.update(v, e)
}

// logNode folds what happened to nodes.
func (r *Recorder) logNode(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.PriceChanged:
		for n := range r.nodes {
			r.reprice(v, sched.NodeID(n))
		}
	case sched.Measured:
		if e.Job == sched.None && e.Node != sched.None && e.Value > 0 {
			r.measured(v, e.Node, sched.Watts(e.Value))
		}
		if e.Job != sched.None {
			measuredJob(r, v, e)
		}
	default:
		if r.any && e.Kind == sched.NodeLeft && e.Code == int32(sched.NodeDown) {
			r.sums.failures++
		}
		r.node(v, e.Node)
	}
}

// advance adds up what went on since the last event.
func (r *Recorder) advance(now sched.Time) {
	before, dt := r.now, now.Sub(r.now)
	r.now = now
	if dt <= 0 || !r.any {
		return
	}
	s := dt.Seconds()
	r.sums.busy += sched.GPUTime(r.busy, dt)
	r.sums.usable += sched.GPUTime(r.usable, dt)
	r.sums.nodes += float64(r.active) * s
	drawn := draw{r.meter.jobs.watts, r.meter.idle.watts, r.meter.sleep.watts}
	r.sums.energy.jobs += drawn.jobs * s
	r.sums.energy.idle += drawn.idle * s
	r.sums.energy.sleep += drawn.sleep * s
	if r.Energy.Price != nil {
		r.sums.energyCost += r.Energy.Price.Of(sched.Watts(drawn.all()), before, now)
	}
	if r.Energy.Carbon != nil {
		r.sums.carbon += r.Energy.Carbon.Of(sched.Watts(drawn.all()), before, now)
	}
	r.sums.cost += r.price * sched.Dollars(s/3600)
}

// concernsJob reports whether e is about a job that is not done: as long as such events come, time counts. What nodes
// and prices do afterwards is no part of the run.
func (r *Recorder) concernsJob(e *sched.Event) bool {
	return e.Kind == sched.JobArrived ||
		e.Kind.Form().Life && e.Job != sched.None && !r.over(e.Job)
}

func (r *Recorder) arrived(v *sched.View, e *sched.Event) {
	spec := e.Spec
	rec := Job{Name: spec.Name, GPUs: spec.GPUs.Want, Submit: e.Time, Start: sched.None, Finish: sched.None}
	if r.old != nil {
		r.old.add(rec)
	} else {
		r.Jobs = append(r.Jobs, rec)
	}
	r.held.arrived()
	if !r.any {
		r.any, r.first, r.now, r.rent.before = true, e.Time, e.Time, spent(v)
		r.closed = sums{}
	}
}

// hold notes that the attempt of job id takes its devices.
func (r *Recorder) hold(v *sched.View, id sched.JobID) {
	if v.ShareLimit > 1 {
		lookAtEach(r)
	}
	set := v.Jobs[id].GPUs
	held := r.held.take(id, set)
	if last := int(set[len(set)-1]); last >= len(r.worked) {
		more := last + 1 - len(r.worked)
		r.worked = append(r.worked, make([]sched.Time, more)...)
		if r.each {
			r.on = append(r.on, make([][]sched.JobID, more)...)
		}
	}
	if !r.each {
		r.count(v, held, 1)
	} else {
		for i, g := range held {
			if r.on[g] = append(r.on[g], id); len(r.on[g]) == 1 {
				r.count(v, held[i:i+1], 1)
			}
		}
	}
	r.enter(v, id, held)
	reshareAll(r, v, held)
}

// lookAtEach has r keep who is on each GPU from now on.
func lookAtEach(r *Recorder) {
	if !r.each {
		r.each, r.on = true, r.held.byGPU(len(r.worked))
	}
}

func (r *Recorder) drop(v *sched.View, e *sched.Event) {
	id := e.Job
	r.stopWork(v, id, e.Time)
	held := r.held.set(id)
	book(r, id, e.Time)
	delete(r.meter.used, id)
	if !r.each {
		r.count(v, held, -1)
	} else {
		for i, g := range held {
			r.on[g] = slices.DeleteFunc(r.on[g], func(other sched.JobID) bool { return other == id })
			if len(r.on[g]) == 0 {
				r.count(v, held[i:i+1], -1)
			}
		}
	}
	r.leave(v, id, held)
	reshareAll(r, v, held)
	r.held.drop(id)
}

// stopWork notes that the attempt of job id, if it has one, works no longer. A GPU on which several work counts once:
// all that work there do so up to now, so the time since it was last counted, or since the first of them started, is
// new.
func (r *Recorder) stopWork(v *sched.View, id sched.JobID, now sched.Time) {
	x := r.held.of(id)
	if x == nil {
		return
	}
	if now > x.from {
		gpus, last := 0, time.Duration(0)
		add := func(k int, d time.Duration) {
			if d != last {
				r.work += sched.GPUTime(gpus, last)
				gpus, last = 0, d
			}
			gpus += k
		}
		for set := x.set; len(set) > 0; {
			n, k := v.GPUs[set[0]].Node, v.Lead(set)
			worked, rec := r.worked[set[0]:][:k], &r.nodes[n]
			if !r.each && rec.worked <= x.from {
				add(k, now.Sub(x.from))
			} else {
				for i, until := range worked {
					from := x.from
					if r.each {
						from = r.held.first(r.on[set[i]])
					}
					add(1, max(now.Sub(max(from, until)), 0))
				}
			}
			for i := range worked {
				worked[i] = now
			}
			rec.worked, set = now, set[k:]
		}
		r.work += sched.GPUTime(gpus, last)
	}
	x.from = sched.Never
}

// working returns the GPU time up to end in which attempts have worked that still do, as far as it is not counted yet.
func (r *Recorder) working(end sched.Time) (work sched.GPUSeconds) {
	on := r.on
	if !r.each {
		on = r.held.byGPU(len(r.worked))
	}
	for g, jobs := range on {
		from := r.held.first(jobs)
		if d := end.Sub(max(from, r.worked[g])); from < end && d > 0 {
			work += sched.GPUTime(1, d)
		}
	}
	return work
}

// count adds the GPUs of set to those that are held, or takes them away.
func (r *Recorder) count(v *sched.View, set []sched.GPUID, d int) {
	r.busy += d * len(set)
	for len(set) > 0 {
		n, k := v.GPUs[set[0]].Node, v.Lead(set)
		rec := &r.nodes[n]
		was := rec.busy
		rec.busy, set = rec.busy+int32(d*k), set[k:]
		if (was == 0) != (rec.busy == 0) {
			r.active += d
		}
	}
}

// update copies what the engine counts about a job, and closes the record of one that is done.
func (r *Recorder) update(v *sched.View, e *sched.Event) {
	j, rec := &v.Jobs[e.Job], r.record(e.Job)
	rec.Preemptions, rec.Migrations, rec.Resizes = j.Preemptions, j.Migrations, j.Resizes
	rec.Run, rec.Service, rec.Start = j.Run, j.Service, j.FirstStart
	if j.State == sched.Done && rec.Outcome == sched.NoOutcome {
		rec.Outcome, rec.Finish = j.Outcome, j.End
		if d := j.Spec.Deadline; d > 0 && j.End > d {
			r.misses++
		}
	}
}

// nodeRecord is what a node adds to the sums at present.
type nodeRecord struct {
	busy   int32 // GPUs held by attempts
	gpus   int
	price  sched.Dollars
	worked sched.Time // the latest of its GPUs in Recorder.worked
}

// node exchanges what node n adds to the sums when it comes, goes or changes. A node is paid for while it is up,
// draining or asleep. What a rented one costs is counted by its pool.
func (r *Recorder) node(v *sched.View, n sched.NodeID) {
	for int(n) >= len(r.nodes) {
		r.nodes = append(r.nodes, nodeRecord{})
	}
	node, rec := &v.Nodes[n], &r.nodes[n]
	gpus := 0
	if node.State == sched.NodeUp || node.State == sched.NodeDraining {
		gpus = node.Spec.GPUs
	}
	r.usable += gpus - rec.gpus
	rec.gpus = gpus
	r.reprice(v, n)
	r.changed(v, n)
}

// reprice exchanges what node n costs.
func (r *Recorder) reprice(v *sched.View, n sched.NodeID) {
	node, rec := &v.Nodes[n], &r.nodes[n]
	price := sched.Dollars(0)
	if node.Joined() && v.PoolOf(node) == nil {
		price = node.Price
	}
	r.price += price - rec.price
	rec.price = price
}
