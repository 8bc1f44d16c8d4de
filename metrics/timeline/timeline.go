package timeline

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Timeline folds a log. The zero value is ready to use.
type Timeline struct {
	Meter Meter // nil = it is not known what the cluster draws and costs

	Jobs     []Job     // by JobID
	Attempts []Attempt // in the order in which they were ordered
	Nodes    []Node    // by NodeID, as they are at the end
	Types    []string  // names of GPU types, as far as known
	spells   []Spell   // that are over

	jobs  jobs
	old   *old      // nil = Jobs and Attempts have all
	on    [][]int32 // by GPU: the attempts that hold it
	users sched.Names

	gpus   []gpu // by number
	counts [kinds]int
	idle   []int  // by node: idle GPUs
	free   []free // by type
	queue  queue
	open   []sched.JobID // that are to hold other GPUs than they do
	stale  bool          // the classes of idle GPUs are to be found again

	started bool
	any     bool // a job has arrived
	now     sched.Time
	first   sched.Time // of the first arrival
	end     sched.Time // of the last event about a job that was not done
	now1    step       // what is so now
	pending pending    // since end
	known   *buckets   // rows: classes but the first four, held, queue of jobs, queue of GPUs
}

// Node is a node of the cluster.
type Node struct {
	Name  string
	Type  sched.TypeID
	Rack  int32
	First sched.GPUID
	GPUs  int
}

// Spell is a time in which GPUs of one node were in a class between Down and Booting: no job was given them.
type Spell struct {
	GPUs     Run
	Class    Class
	From, To sched.Time
}

// step is what was so for a while.
type step struct {
	from, to sched.Time
	counts   [Classes + 1]int // by class, and held
	jobs     int              // that wait
	gpus     int              // that they ask for
	watts    float64
	spending // meanwhile
}

// Log folds one event.
func (t *Timeline) Log(v *sched.View, e *sched.Event) {
	if t.old != nil {
		t.old.view = v
	}
	if !t.started {
		t.start(v, e)
	}
	if e.Time > t.now {
		t.advance(e.Time)
	}
	if t.concernsJob(e) {
		t.flush()
	}
	if e.Kind.Form().Job != sched.NotNamed && e.Job >= 0 && int(e.Job) < len(v.Jobs) {
		t.foldJob(v, e)
	}
	switch e.Kind {
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged, sched.Moved:
		t.refreshNode(v, e.Node)
	case sched.GPUChanged:
		t.refreshNode(v, v.GPUs[int(e.Value)].Node)
	case sched.Ordered:
		if sched.ActionKind(e.Code) == sched.SetNode {
			t.refreshNode(v, e.Node)
		}
	}
}

// start takes what there is before the first event, of a log that does not start with an empty cluster.
func (t *Timeline) start(v *sched.View, e *sched.Event) {
	t.pending.start(t.Meter)
	t.started, t.Types = true, slices.Clone(v.Types)
	for id := range v.Jobs {
		if e.Kind == sched.JobArrived && int(e.Job) == id {
			continue
		}
		t.arrived(v, sched.JobID(id))
		j := &v.Jobs[id]
		if j.HoldsDevices() && !(e.Kind == sched.Ordered && e.Job == sched.JobID(id)) {
			t.ordered(v, sched.JobID(id), j.Began)
			a := t.liveAttempt(sched.JobID(id))
			if j.Up {
				a.Up, a.Work = j.LastStart, j.LastStart
			}
			t.jobs.of(sched.JobID(id)).base = j.Loss().Base
			t.reported(v, sched.JobID(id))
		}
	}
	if len(t.jobs.at) > 0 {
		t.any, t.first, t.now, t.end = true, e.Time, e.Time, e.Time
	}
	for n := range v.Nodes {
		t.refreshNode(v, sched.NodeID(n))
	}
	for id := range t.jobs.at {
		t.refreshJob(v, sched.JobID(id))
	}
}

// concernsJob reports whether e is about a job that is not done. As long as such events come, time counts: what nodes
// do afterwards is no part of the run.
func (t *Timeline) concernsJob(e *sched.Event) bool {
	if e.Kind == sched.JobArrived {
		return true
	}
	if !e.Kind.Form().Life || e.Job < 0 || int(e.Job) >= len(t.jobs.at) {
		return false
	}
	l := t.jobs.of(e.Job)
	return l != nil && !l.done
}

// arrived notes a job, and all that came before it.
func (t *Timeline) arrived(v *sched.View, id sched.JobID) {
	j := &v.Jobs[id]
	l := t.jobs.add(t.users.ID(j.Spec.User), j.State == sched.Done)
	switch {
	case t.old == nil:
		t.Jobs = append(t.Jobs, described(j))
	case l != nil:
		l.job = described(j)
	}
}

// foldJob folds an event about a job.
func (t *Timeline) foldJob(v *sched.View, e *sched.Event) {
	// Logs of others may start a job again that is done: its attempts count all the same. The engine never does, and a
	// compact Timeline is given its events alone.
	if e.Kind == sched.Decided && t.old == nil && len(v.Jobs[e.Job].Target) > 0 && t.jobs.of(e.Job) == nil {
		t.jobs.reopen(e.Job)
	}
	switch e.Kind {
	case sched.JobArrived:
		if int(e.Job) == len(t.jobs.at) {
			t.arrived(v, e.Job)
		}
		if !t.any {
			t.any, t.first, t.now, t.end = true, e.Time, e.Time, e.Time
			t.pending.start(t.Meter)
		}
	case sched.AttemptStarted:
		t.cameUp(v, e)
	case sched.Progressed:
		t.reported(v, e.Job)
	case sched.AttemptEnded, sched.StartFailed:
		t.ended(v, e)
	case sched.Saved:
		t.saved(v, e)
	case sched.Decided:
		t.decided(e)
	case sched.Ordered:
		t.order(v, e)
	}
	t.stands(v, e)
}

// stands notes how the job of an event stands after it.
func (t *Timeline) stands(v *sched.View, e *sched.Event) {
	l := t.jobs.of(e.Job)
	if l == nil {
		return
	}
	if !l.done && v.Jobs[e.Job].State == sched.Done {
		l.done = true
		t.jobs.undone--
	}
	if e.Kind.Form().Moves || e.Kind == sched.Decided || e.Kind == sched.JobChanged {
		t.refreshJob(v, e.Job)
	}
	if l.over() {
		t.forget(e.Job, l)
		t.jobs.drop(e.Job)
	}
}

// decided takes the reason of a decision about a job.
func (t *Timeline) decided(e *sched.Event) {
	if l := t.jobs.of(e.Job); l != nil {
		l.given, l.decision = e.Why, e.Seq
	}
	a := t.liveAttempt(e.Job)
	if a == nil {
		return
	}
	switch width := a.Width(); {
	case e.Why.Code == sched.WhyKept:
		return
	case len(e.GPUs) > 0 && len(e.GPUs) != width:
		a.Marks |= Resized
	case len(e.GPUs) > 0 && e.Why.Code == sched.WhyMoved:
		a.Marks |= Migrated
	}
	a.Reason = e.Why
}

// order folds an order of the engine about a job.
func (t *Timeline) order(v *sched.View, e *sched.Event) {
	switch sched.ActionKind(e.Code) {
	case sched.Start:
		t.ordered(v, e.Job, e.Time)
	case sched.Stop:
		if a := t.liveAttempt(e.Job); a != nil {
			a.Stopped = e.Time
			t.reported(v, e.Job)
		}
	}
}

// advance notes what was so since the last event.
func (t *Timeline) advance(now sched.Time) {
	if t.any {
		t.settleIdle()
		s := t.now1
		s.from, s.to, s.jobs, s.gpus = t.now, now, t.queue.jobs, t.queue.gpus
		if t.Meter != nil {
			s.watts = t.Meter.Watts()
			s.spending = t.pending.spend(t.Meter, t.now, now)
		}
		t.pending.add(s)
	}
	t.now = now
}

// flush adds up what was so until now.
func (t *Timeline) flush() {
	if !t.any {
		return
	}
	if t.known == nil {
		t.known = newBuckets(t.first, seriesRows)
	}
	for i := range t.pending.list {
		s := &t.pending.list[i]
		for c := Down; c <= held; c++ {
			t.known.add(int(c), s.from, s.to, s.counts[c])
		}
		t.known.add(queueJobs, s.from, s.to, s.jobs)
		t.known.add(queueGPUs, s.from, s.to, s.gpus)
		t.known.joules.add(t.known, s.from, s.to, s.watts)
		t.known.costs.add(t.known, s)
		t.known.extremes.add(t.known, s)
	}
	t.pending.list, t.end = t.pending.list[:0], t.now
}
