package engine

import (
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// Apply folds one event. It gives the event its Seq, and a JobArrived its Job. An event that contradicts the state
// panics: drivers and logs are checked where they enter, so here it is a bug.
func (s *State) Apply(e *sched.Event) {
	if e.Time < s.view.Now {
		broken(&s.view, e, "time falls from %v", s.view.Now)
	}
	s.seq++
	e.Seq = s.seq
	s.view.Version = s.seq
	s.view.Now = e.Time
	switch f := e.Form(); {
	case f.Attempt:
		s.foldAttempt(e)
	case f.Cause == sched.ByUser:
		s.foldUser(e)
	case f.Cause == sched.ByEngine:
		s.foldOwn(e)
	default:
		s.foldCluster(e)
	}
}

// foldAttempt folds what became of an attempt.
func (s *State) foldAttempt(e *sched.Event) {
	switch e.Kind {
	case sched.AttemptStarted:
		started(s, e)
	case sched.AttemptEnded:
		s.ended(e)
	case sched.StartFailed:
		s.startFailed(e)
	case sched.Progressed:
		progressed(&s.view, e)
	case sched.EpochEnded:
		s.epochEnded(e)
	case sched.Saved:
		saved(&s.view, e)
	}
}

// foldUser folds what a user wants.
func (s *State) foldUser(e *sched.Event) {
	switch e.Kind {
	case sched.JobArrived:
		s.arrived(e)
	case sched.JobCommanded:
		s.commanded(e)
	case sched.JobChanged:
		s.changed(e)
	}
}

// foldOwn folds what the engine itself decided.
func (s *State) foldOwn(e *sched.Event) {
	switch e.Kind {
	case sched.Decided:
		s.decided(e)
	case sched.Ordered:
		s.ordered(e)
	case sched.Moved:
		s.moved(e)
	case sched.Rejected:
		s.finish(e.Job, &s.view.Jobs[e.Job], sched.RejectedJob)
	case sched.Released:
		s.view.Jobs[e.Job].State = sched.Waiting
	}
}

// foldCluster folds what became of nodes, GPUs, pools and prices.
func (s *State) foldCluster(e *sched.Event) {
	switch e.Kind {
	case sched.NodeJoined:
		s.nodeJoined(e)
	case sched.NodeLeft, sched.NodeChanged:
		s.nodeChanged(e)
	case sched.GPUChanged:
		s.gpuChanged(e)
	case sched.PoolChanged:
		poolChanged(&s.view, e)
	case sched.PriceChanged:
		priceChanged(&s.view, e)
	case sched.Measured:
		if e.Job == sched.None && e.Node != sched.None && e.Value > 0 {
			s.view.Nodes[e.Node].Watts = sched.Watts(e.Value)
		}
	}
}

func (s *State) arrived(e *sched.Event) {
	v := &s.view
	e.Job = sched.JobID(len(v.Jobs))
	j := sched.Job{Spec: e.Spec, Asked: e.Spec.GPUs.Want, State: sched.Waiting, Arrived: e.Time, Settled: e.Time,
		FirstStart: sched.None, LastStart: sched.None, NotBefore: e.Spec.NotBef, Evidence: sched.DeclaredBy(e.Spec)}
	v.Users.ID(e.Spec.User)
	blocked := int32(0)
	for _, d := range e.Spec.After {
		if d < 0 || d >= e.Job {
			broken(&s.view, e, "depends on job %d, want an earlier one", d)
		}
		if v.Jobs[d].State != sched.Done {
			blocked++
			s.dependents[d] = append(s.dependents[d], e.Job)
		}
	}
	j.SetBlockedBy(blocked)
	if d := e.Spec.Untied(); d != sched.None {
		broken(&s.view, e, "depends on how job %d ends, want a job of after", d)
	}
	s.lines.queue(&j, e.Job)
	unmeetable := e.Spec.Unmeetable(v) != sched.None
	if j.BlockedBy() > 0 || j.NotBefore > e.Time || unmeetable {
		j.State = sched.Held
	}
	if unmeetable {
		s.alarms.Push(arena.JobAt{At: e.Time, Job: e.Job})
	}
	if j.NotBefore > e.Time {
		s.alarms.Push(arena.JobAt{At: j.NotBefore, Job: e.Job})
	}
	v.Jobs = append(v.Jobs, j)
	s.work.listed = append(s.work.listed, false)
	s.live++
}

// attempt returns the job of an event about its latest attempt, settled.
func attempt(v *sched.View, e *sched.Event) *sched.Job {
	j := &v.Jobs[e.Job]
	if e.Attempt != j.Attempts {
		broken(v, e, "latest attempt is %d", j.Attempts)
	}
	j.Settle(e.Time)
	return j
}

// started counts what an attempt does from when it came up, if that was before it was heard of.
func started(s *State, e *sched.Event) {
	v := &s.view
	at := max(e.Happened(), v.Jobs[e.Job].Began) // not before it was ordered
	j := attempt(v, e)
	switch j.Attempt {
	case sched.Starting:
		j.Attempt = sched.Running
	case sched.Stopping: // it came up while being stopped; it goes on stopping
	default:
		broken(v, e, "attempt is %v", j.Attempt)
	}
	if j.FirstStart < 0 {
		j.FirstStart = at
	}
	j.LastStart, j.Settled, j.Up, j.StartFailures = at, at, true, 0
	acquit(s, j.GPUs)
	j.Work, j.WorkFrom, j.Rate = e.Work, e.WorkFrom, e.Rate
	j.SetBase(e.Work)
}

// saved folds what shows whether a job keeps its work.
func saved(v *sched.View, e *sched.Event) { attempt(v, e).Shown(e.Code) }

func progressed(v *sched.View, e *sched.Event) {
	j := attempt(v, e)
	j.Work, j.WorkFrom, j.Rate = e.Work, e.WorkFrom, e.Rate
}

// epochEnded hands over the exchange that was left for this moment.
func (s *State) epochEnded(e *sched.Event) {
	j := &s.view.Jobs[e.Job]
	j.Epoch = int32(e.Value)
	s.due = nil
	if e.Attempt == j.Attempts && j.Attempt == sched.Running {
		s.due = j.Later()
		j.SetLater(nil)
	}
}

// release ends the latest attempt and gives its devices back.
func (s *State) release(e *sched.Event, j *sched.Job) {
	if !j.HoldsDevices() {
		broken(&s.view, e, "attempt is %v", j.Attempt)
	}
	hold(s, j.GPUs, j.Live.Share, -1)
	s.sets.Recycle(j.GPUs)
	j.GPUs, j.Up = nil, false
	j.Attempt = sched.Ended
	s.work.mark(e.Job)
}

// ended takes back what an attempt was counted for after it had ended, if that was before it was heard of.
func (s *State) ended(e *sched.Event) {
	j := attempt(&s.view, e)
	at := max(e.Happened(), j.Settled)
	if j.Up {
		at = max(e.Happened(), j.LastStart)
		late := e.Time.Sub(at)
		j.Run, j.Service = j.Run-late, max(j.Service-sched.GPUTime(len(j.GPUs), late), 0)
	}
	if j.ForOthers(e.Outcome) {
		s.few.Give(j)
	}
	j.TakeLoss(at, e.Outcome, e.Work)
	closeAttempt(s, e, j)
	if j.State == sched.Done {
		j.End = at
	}
}

// closeAttempt gives back what an ended attempt held, and says what becomes of its job.
func closeAttempt(s *State, e *sched.Event, j *sched.Job) {
	s.release(e, j)
	j.Work, j.WorkFrom, j.Rate = e.Work, e.Time, 0
	switch e.Outcome {
	case sched.Finished, sched.Cancelled:
		s.finish(e.Job, j, e.Outcome)
	case sched.Preempted:
		s.rest(e.Job, j)
	case sched.NodeLost:
		s.dropTarget(j)
		s.restUntil(e, j)
		s.rest(e.Job, j)
	case sched.Failed:
		j.Failures++
		s.dropTarget(j)
		if j.Failures > j.Spec.Retries || e.WorkFrom == sched.Never {
			s.finish(e.Job, j, sched.Failed)
			return
		}
		s.restUntil(e, j)
		s.rest(e.Job, j)
	default:
		broken(&s.view, e, "outcome %v", e.Outcome)
	}
}

// restUntil keeps a job from being tried again before the time that its end says.
func (s *State) restUntil(e *sched.Event, j *sched.Job) {
	if e.WorkFrom > e.Time {
		j.NotBefore = e.WorkFrom
		s.alarms.Push(arena.JobAt{At: j.NotBefore, Job: e.Job})
	}
}

// rest leaves a job without an attempt waiting, held or, if its user cancelled it, done.
func (s *State) rest(id sched.JobID, j *sched.Job) {
	switch {
	case j.Cancel:
		s.finish(id, j, sched.Cancelled)
	case j.Paused || j.BlockedBy() > 0 || j.NotBefore > s.view.Now:
		j.State = sched.Held
	default:
		j.State = sched.Waiting
	}
	s.dropIfUnusable(j)
}

func (s *State) startFailed(e *sched.Event) {
	j := attempt(&s.view, e)
	s.release(e, j)
	s.dropTarget(j)
	for _, g := range e.GPUs {
		if gpu := &s.view.GPUs[g]; gpu.Blamed < math.MaxUint8 && j.StartFailures < mostBlamed { // it fails everywhere
			gpu.Blamed++
			recheck(s, gpu.Node)
		}
	}
	j.StartFailures++
	j.NotBefore = max(e.WorkFrom, e.Time.Add(backoff(j.StartFailures)))
	s.alarms.Push(arena.JobAt{At: j.NotBefore, Job: e.Job})
	s.rest(e.Job, j)
}

// backoff returns how long a job rests after its n-th failed start in a row: a second, doubled each time, 256 s at
// most.
func backoff(n int32) time.Duration { return time.Second << min(n-1, 8) }

// finish marks the job done and notifies those that wait for it.
func (s *State) finish(id sched.JobID, j *sched.Job, o sched.Outcome) {
	j.State, j.Outcome, j.End = sched.Done, o, s.view.Now
	s.dropTarget(j)
	s.live--
	for _, d := range s.dependents[id] {
		s.unblock(d, s.view.Jobs[d].Spec.Misses(id, o))
	}
	delete(s.dependents, id)
	if next, passes := s.lines.pass(&s.view, j, id); passes {
		s.unblock(next, false)
	}
}

// unblock has a job wait for one thing less, which it misses if that ended otherwise than it wants.
func (s *State) unblock(id sched.JobID, misses bool) {
	j := &s.view.Jobs[id]
	j.SetBlockedBy(j.BlockedBy() - 1)
	switch {
	case j.State != sched.Held:
	case misses:
		s.alarms.Push(arena.JobAt{At: s.view.Now, Job: id})
	case j.BlockedBy() == 0:
		s.alarms.Push(arena.JobAt{At: max(s.view.Now, j.NotBefore), Job: id})
	}
}

// setTarget exchanges the target of j for a copy of gpus.
func (s *State) setTarget(j *sched.Job, gpus []sched.GPUID, c sched.Config, trial bool) {
	addTenants(s, j.Target, j.Share, j.Trial, -1)
	s.sets.Recycle(j.Target)
	j.Target, j.Config, j.Trial = s.sets.CopyOf(gpus), c, trial
	addTenants(s, j.Target, j.Share, j.Trial, 1)
	j.SetLater(nil)
}

func (s *State) dropTarget(j *sched.Job) {
	s.setTarget(j, nil, j.Config, false)
	j.Want = 0
}

func (s *State) decided(e *sched.Event) {
	j, t := &s.view.Jobs[e.Job], e.Target
	want := max(t.Want, int32(len(e.GPUs)))
	if t.At == sched.AtEpochEnd && len(j.Target) > 0 {
		j.SetLater(&sched.Later{GPUs: slices.Clone(e.GPUs), Config: t.Config, Want: want, Trial: t.Trial, Why: t.Why})
		return
	}
	if was, now := len(j.Target), len(e.GPUs); was > 0 {
		switch {
		case now == 0:
			j.Preemptions++
		case now != was:
			j.Resizes++
		case !arena.SameSet(j.Target, e.GPUs):
			j.Migrations++
		}
	}
	s.setTarget(j, e.GPUs, t.Config, t.Trial)
	j.Want = want
	s.work.mark(e.Job)
}

// ordered notes that the driver is being asked to start or stop an attempt.
func (s *State) ordered(e *sched.Event) {
	switch sched.ActionKind(e.Code) {
	case sched.SetNode:
		n := &s.view.Nodes[e.Node]
		n.Ordered = sched.NodeState(e.Value)
		n.Awaited = n.Awaited || n.Ordered != n.State // an earlier order may still be on its way
		return
	case sched.Rent:
		p := pool(&s.view, e)
		p.Settle(e.Time)
		p.Ordered = int32(e.Value)
		return
	}
	if e.Job == sched.None {
		return
	}
	j := &s.view.Jobs[e.Job]
	j.Settle(e.Time)
	switch sched.ActionKind(e.Code) {
	case sched.Start:
		j.Attempts++
		if j.Requeued {
			j.SetRunBefore(j.Run)
		}
		j.Attempt, j.State, j.Requeued, j.Live = sched.Starting, sched.Active, false, j.Config
		j.Began, j.Evidence = e.Time, j.Evidence.Stated(j.Spec)
		if j.Work > 0 {
			s.few.Give(j)
		}
		j.SetBase(j.Work)
		j.SetOwnStop(false)
		j.GPUs = s.sets.CopyOf(j.Target)
		hold(s, j.GPUs, j.Share, 1)
	case sched.Stop: // no work is done any more; what was saved is known when it has ended
		j.Work, j.WorkFrom, j.Rate = j.WorkNow(e.Time), e.Time, 0
		j.Attempt = sched.Stopping
		j.SetOwnStop(j.Paused)
	case sched.WatchEpochs:
		j.Watched = e.Value != 0
	case sched.Adjust:
		j.Live.Cap = sched.Watts(e.Value)
	}
}

func (s *State) commanded(e *sched.Event) {
	j := &s.view.Jobs[e.Job]
	if j.State == sched.Done {
		return
	}
	s.work.mark(e.Job)
	switch sched.Command(e.Code) {
	case sched.CancelJob:
		j.Cancel = true
		s.dropTarget(j)
		if !j.HoldsDevices() {
			s.finish(e.Job, j, sched.Cancelled)
		}
	case sched.PauseJob:
		j.Paused = true
		s.dropTarget(j)
		if !j.HoldsDevices() {
			j.State = sched.Held
		}
	case sched.ResumeJob:
		j.Paused = false
		if j.State == sched.Held {
			s.alarms.Push(arena.JobAt{At: max(e.Time, j.NotBefore), Job: e.Job})
		}
	case sched.RequeueJob:
		s.dropTarget(j)
		j.Requeued = j.HoldsDevices() // it stops even if it is given the same GPUs at once
	}
}

// changed gives a job that is not done another spec. What it holds goes if it may not be so wide any more, or must be
// wider: then its attempt is stopped, and it waits for as much as it wants now, at the rank that its order gives it.
// What it says of how it saves holds from its next attempt on.
func (s *State) changed(e *sched.Event) {
	j := &s.view.Jobs[e.Job]
	if j.State == sched.Done {
		return
	}
	j.Spec = j.Spec.Changed(e.Change)
	if !j.HoldsDevices() { // else its attempt is as it was started
		j.Evidence = j.Evidence.Stated(j.Spec)
	}
	if n := len(j.Target); n > 0 && !j.Spec.GPUs.Has(n) {
		s.dropTarget(j)
	}
	if l := j.Later(); l != nil && len(l.GPUs) > 0 && !j.Spec.GPUs.Has(len(l.GPUs)) {
		j.SetLater(nil)
	}
	s.work.mark(e.Job)
}

// dropUnusable takes away the targets that cannot be started any more. A job whose attempt is on its target is not on
// the list.
func (s *State) dropUnusable() {
	for _, id := range s.work.jobs {
		s.dropIfUnusable(&s.view.Jobs[id])
	}
}

// dropIfUnusable takes away the target of j if a GPU of it may no longer be given to a job. An attempt that is on such
// a GPU already, of a node that drains, stays.
func (s *State) dropIfUnusable(j *sched.Job) {
	if slices.ContainsFunc(j.Target, func(g sched.GPUID) bool { return !s.view.Usable(g) && !holds(j, g) }) {
		s.dropTarget(j)
	}
}
