package attempts

import (
	"context"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/inventory"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/sched"
)

// Options say what Attempts work with.
type Options struct {
	Mode         v1alpha1.Mode
	StartTimeout time.Duration
	Idle         bool          // nothing is made, so that no start is late
	Every        time.Duration // reports of progress are so far apart at least
	Deaf         bool          // nothing is heard of progress
	Follower     Follower      // nil: no log is read
	// Delayed is called with what keeps the live attempt of a job from starting, "" for nothing that is known; nil: no
	// one asks.
	Delayed func(job sched.JobID, why string)
	// Holds has jobs held that the API server refuses; else their starts fail.
	Holds bool
	Go    func(f func(ctx context.Context)) context.CancelFunc // runs something until the driver ends
	Look  func(observer.Key)                                   // has an object looked at; any goroutine calls it
	Log   *slog.Logger
}

// Attempts are the attempts that are alive, and what is to be known of the next ones of their jobs. They belong to one
// goroutine.
type Attempts struct {
	o         Options
	alive     map[sched.JobID]*live
	losses    map[sched.JobID]int // ends in a row by loss of a machine
	odometers map[sched.JobID]*progress.Odometer
}

// live is an attempt that is alive, as far as the View says.
type live struct {
	*writer.Attempt

	ranks   []rank // what was seen of each
	adopted bool   // those who led before ordered it
	begun   bool   // it was ordered to be made
	waits   bool   // for its devices: its pods are to be made
	delay   delay
	due     time.Time     // when it is too late to start; zero: it was not ordered to
	stop    sched.Outcome // why it is stopped; NoOutcome: it is not
	ending  *ending       // how it ends; nil: it does not
	leaving bool          // its pods are deleted by us, or by those who led before
	// its job is deleted: the garbage collector may delete its pods before we are ordered to stop it
	orphan  bool
	removed bool         // its pods were ordered to be deleted
	forced  map[int]bool // ranks whose pods were given up
	meter   *meter       // reads what it writes
	unhear  context.CancelFunc
	quiet   time.Time // since when it is over, but for words that may be on their way; zero: it is not
}

// rank is what was seen of a rank.
type rank struct {
	seen    bool       // its pod was in the cache
	adopted bool       // its pod was there, as those who led before know
	ended   *podStatus // how it ended by itself, as it was seen first
}

// New returns attempts of which none is alive.
func New(o Options) *Attempts {
	return &Attempts{
		o: o, alive: make(map[sched.JobID]*live), losses: make(map[sched.JobID]int),
		odometers: make(map[sched.JobID]*progress.Odometer),
	}
}

// add adds an attempt, on its GPUs.
func (as *Attempts) add(v *sched.View, id sched.JobID, number int32, gpus []sched.GPUID, c sched.Config) *live {
	a := &live{Attempt: writer.NewAttempt(v, as.o.Mode, id, number, gpus, c), forced: make(map[int]bool)}
	a.ranks = make([]rank, len(a.Ranks))
	as.alive[id] = a
	return a
}

// Adopt takes over the attempt that a job has, if it has one.
func (as *Attempts) Adopt(v *sched.View, id sched.JobID) {
	j := &v.Jobs[id]
	if !j.HoldsDevices() {
		return
	}
	a := as.add(v, id, j.Attempts, j.GPUs, j.Live)
	a.adopted = true
	for i := range a.ranks { // once up, a pod that is not there is gone
		a.ranks[i].adopted = j.Up
	}
	if j.Attempt == sched.Stopping { // the order is given again: until then, what leaves does so by the first
		a.stop, a.leaving = sched.Preempted, true
		if j.Cancel {
			a.stop = sched.Cancelled
		}
	}
}

// Order takes the order to start an attempt. It returns what is to be made, nil if the attempt is being made or is
// ending.
func (as *Attempts) Order(v *sched.View, o *sched.Action) *writer.Attempt {
	a := as.alive[o.Job]
	if a == nil {
		a = as.add(v, o.Job, o.Attempt, o.GPUs, o.Config)
	}
	if a.begun || a.stop != sched.NoOutcome || a.ending != nil {
		return nil
	}
	return a.Attempt
}

// Started notes that an attempt is being made; err says why it cannot be.
func (as *Attempts) Started(id sched.JobID, err error) {
	a := as.alive[id]
	if err != nil {
		a.ending = &ending{text: err.Error()}
		as.o.Look(observer.KeyOfJob(a.Key))
		return
	}
	a.begun = true
	if !as.o.Idle { // else nothing is made, at any time
		a.due = time.Now().Add(as.o.StartTimeout)
	}
}

// Removal is an attempt whose pods are to be deleted.
type Removal struct {
	*writer.Attempt
	Ending string // how it ends, to be written down before; "": nothing is
}

// Stop takes the order to stop an attempt. It returns what is to be deleted, nil if that is under way.
func (as *Attempts) Stop(v *sched.View, o *sched.Action) *Removal {
	a := as.alive[o.Job]
	if a == nil {
		j := &v.Jobs[o.Job]
		a = as.add(v, o.Job, o.Attempt, j.GPUs, j.Live)
	}
	if a.ending == nil && a.stop == sched.NoOutcome { // else it is ending already, and how is known
		a.stop = o.Why
	}
	if a.removed {
		return nil
	}
	return a.remove()
}

// remove notes that the pods of an attempt are being deleted.
func (a *live) remove() *Removal {
	a.leaving, a.removed = true, true
	return &Removal{a.Attempt, a.ending.keep(a.Number)}
}

// IsAlive reports whether a job has an attempt that is alive.
func (as *Attempts) IsAlive(id sched.JobID) bool { return as.alive[id] != nil }

// Orphan notes that the job of an attempt is deleted.
func (as *Attempts) Orphan(id sched.JobID) {
	if a := as.alive[id]; a != nil {
		a.orphan = true
	}
}

// Forget drops what is to be known of the next attempt of a job, as there will be none.
func (as *Attempts) Forget(id sched.JobID) {
	delete(as.odometers, id)
	delete(as.losses, id)
}

// OwnsClaim reports whether a claim is one that the live attempt of a job is to have.
func (as *Attempts) OwnsClaim(in *inventory.Inventory, v *sched.View, id sched.JobID,
	c *resourcev1.ResourceClaim,
) bool {
	a := as.alive[id]
	if a == nil {
		return false
	}
	if a.Ranks[0].Devices == nil { // who led before made it, and its node may not have been looked at yet
		_ = a.FindDevices(in, v)
		defer a.ForgetDevices()
	}
	return a.Attempt.OwnsClaim(c)
}

// OwnsPod reports whether a pod is one of the live attempt of a job.
func (as *Attempts) OwnsPod(id sched.JobID, p *corev1.Pod) bool {
	a := as.alive[id]
	if a == nil || a.Key.Namespace != p.Namespace {
		return false
	}
	r, ok := a.RankOf(p.Name)
	return ok && a.Attempt.OwnsPod(r, p)
}

// On returns the keys of the jobs with attempts on a node.
func (as *Attempts) On(node sched.NodeID) (keys []observer.Key) {
	for _, a := range as.alive {
		if slices.ContainsFunc(a.Ranks, func(r writer.Rank) bool { return r.Node == node }) {
			keys = append(keys, observer.KeyOfJob(a.Key))
		}
	}
	return keys
}

// Waiting returns the keys of the jobs whose attempts wait for devices.
func (as *Attempts) Waiting() (keys []observer.Key) {
	for _, a := range as.alive {
		if a.waits {
			keys = append(keys, observer.KeyOfJob(a.Key))
		}
	}
	return keys
}

// UntilDue returns the time until an attempt should have started, at least a moment, and the keys of those that are
// late.
func (as *Attempts) UntilDue(v *sched.View, moment time.Duration) (least time.Duration, late []observer.Key) {
	least = time.Hour
	for _, a := range as.alive {
		if a.due.IsZero() || a.ending != nil || a.stop != sched.NoOutcome || v.Jobs[a.Job].Up {
			continue
		}
		left := time.Until(a.due)
		if left <= 0 {
			late = append(late, observer.KeyOfJob(a.Key))
		}
		least = min(least, max(left, moment))
	}
	return least, late
}
