package driver

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/claims"
	"github.com/trainyard/trainyard/kube/driver/inventory"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// Options say what a Driver works with.
type Options struct {
	Client client.Client   // reads from a cache that is in step, writes to the API server
	Reader client.Reader   // reads from the API server itself
	Queue  *observer.Queue // of what changes in that cache, see Queue.Watch
	Origin time.Time       // the instant that is time 0

	Mode         v1alpha1.Mode
	DeviceClass  string        // of claims
	StartTimeout time.Duration // see SchedulerPolicySpec
	// PriorityClass is that of pods whose template has none. It should not preempt: kube-scheduler would, without asking. "" = none.
	PriorityClass string

	// Types gives the product name of a GPU its number. The error says why it has none.
	Types func(product string) (sched.TypeID, error)
	// NewType is told of a product that has no number, of which there is a node: that is left out until it has one. nil = nobody is told.
	NewType  func(product string)
	Provider Provider // nil = nothing can be rented
	Follower Follower // nil = nobody follows logs: progress is told by annotation alone
	Deaf     bool     // not even by that

	// Lease returns an error once another may lead. It is asked before each write, and an error ends the driver. nil = nobody else may.
	Lease func() error
	// Event tells those who look at an object what happened to it; nil = nobody is told. It may be called by anybody.
	Event func(about client.Object, reason, text string)
	// Delayed tells what keeps the live attempt of a job from starting; "" = nothing that is known. It is called by the goroutine of the
	// engine, before an answer that has an event; nil = nobody is told.
	Delayed func(job sched.JobID, why string)
	// Observe has nothing written, so that nothing that is decided is done.
	Observe bool
	// Tell is how often progress is told, at most; 0 = every 10 s.
	Tell time.Duration
	Log  *slog.Logger // nil = nobody listens
}

// Driver runs attempts as pods. Its methods belong to one goroutine, that of the engine, but for those that say otherwise.
type Driver struct {
	o    Options
	crew *crew
	view *sched.View
	now  sched.Time // of the last answer
	base time.Time  // with a monotonic reading: the clock was at at
	at   sched.Time

	ids        map[types.NamespacedName]sched.JobID // of the jobs that arrived, the latest of a name
	counted    int                                  // jobs of the View that ids knows
	attempts   map[sched.JobID]*attempt             // that are alive
	over       []*attempt                           // whose ends are told, but not durable yet
	unclean    map[sched.JobID][]*attempt           // of which something may be left
	lost       map[sched.JobID]int                  // ends in a row by loss of a machine
	odometers  map[sched.JobID]*progress.Odometer
	inventory  *inventory.Inventory
	claims     *claims.Claims
	turnedAway map[types.NamespacedName]types.UID // jobs that were told why they do not arrive, and are there

	mu       sync.Mutex
	troubles map[string]string // with renting, by pool, as told; for the crew

	observer *observer.Observer

	// Of the look under way:
	ctx      context.Context
	found    observer.Found
	arrivals []*v1alpha1.TrainingJob
	newPools []string
}

var _ sched.Driver = (*Driver)(nil)

// gather is how long an answer waits for company, so that what happens together is decided, and made durable, together.
const (
	gather    = 20 * time.Millisecond
	tellEvery = 10 * time.Second
)

// New returns a driver. Nothing is written before Sync.
func New(o Options) *Driver {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Event == nil {
		o.Event = func(client.Object, string, string) {}
	}
	if o.NewType == nil {
		o.NewType = func(string) {}
	}
	if o.Tell == 0 {
		o.Tell = tellEvery
	}
	return &Driver{o: o, crew: newCrew(o.Lease), observer: observer.New(o.Queue, o.Log), ids: make(map[types.NamespacedName]sched.JobID), attempts: make(map[sched.JobID]*attempt),
		unclean: make(map[sched.JobID][]*attempt), lost: make(map[sched.JobID]int), odometers: make(map[sched.JobID]*progress.Odometer),
		inventory: inventory.New(inventory.Options{Mode: o.Mode, Types: o.Types, NewType: o.NewType, Log: o.Log}), claims: claims.New(o.Log, o.Event), turnedAway: make(map[types.NamespacedName]types.UID),
		troubles: make(map[string]string)}
}

// Close calls off what is not written yet, and returns once nothing of the driver is at work. Attempts go on.
func (d *Driver) Close() { d.crew.close() }

// Now returns the instant of the last answer.
func (d *Driver) Now() sched.Time { return d.now }

// clock returns the time. It never falls, whatever is done to the clock of the machine.
func (d *Driver) clock() sched.Time { return max(d.at.Add(time.Since(d.base)), d.now) }

// Next waits for something to happen, and a moment longer for what comes with it.
func (d *Driver) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	d.learn()
	d.sweep()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := d.crew.err(); err != nil {
			return nil, err
		}
		now := d.clock()
		if until <= d.now || now < until { // else the tick comes before what happened after it
			if events := d.collect(ctx, now); len(events) > 0 {
				return events, nil
			}
		}
		switch {
		case until <= now:
			d.now = max(until, d.now)
			return []sched.Event{{Time: d.now, Kind: sched.Ticked}}, nil
		case d.observer.Waits(): // and nothing was told
			continue
		}
		d.wait(ctx, min(time.Duration(until-now), d.untilDue()))
	}
}

// wait returns after a time, or a moment after something happened.
func (d *Driver) wait(ctx context.Context, atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	for ready := d.o.Queue.Ready(); ; {
		select {
		case <-ctx.Done():
			return
		case <-d.crew.lost:
			return
		case <-timer.C:
			return
		case <-ready:
			ready = nil
			timer.Reset(min(gather, atMost))
		}
	}
}

// untilDue returns the time until an attempt should have started, and has those that are late looked at.
func (d *Driver) untilDue() time.Duration {
	least := time.Hour
	for _, a := range d.attempts {
		if a.due.IsZero() || a.fate != nil || a.stop != sched.NoOutcome || d.view.Jobs[a.id].Up {
			continue
		}
		left := time.Until(a.due)
		if left <= 0 {
			d.o.Queue.Push(observer.KeyOfJob(a.key))
		}
		least = min(least, max(left, gather))
	}
	return least
}

// collect looks at everything that changed and returns what is to be told at the instant now.
func (d *Driver) collect(ctx context.Context, now sched.Time) []sched.Event {
	keys := d.observer.Take()
	if len(keys) == 0 {
		return nil
	}
	was := d.now
	d.now = now
	answer := d.lookAtAll(ctx, keys)
	if len(answer) == 0 {
		d.now = was
	}
	return answer
}

// lookAtAll looks at objects, kind by kind, and returns what they show.
func (d *Driver) lookAtAll(ctx context.Context, keys []observer.Key) []sched.Event {
	d.ctx, d.arrivals, d.newPools = ctx, nil, nil
	d.inventory.StartLook(d.view)
	return d.observer.Look(d.now, keys, observer.Steps{
		Object: func(k observer.Key) (observer.Found, error) {
			d.found = observer.Found{}
			err := d.lookAt(k)
			return d.found, err
		},
		Kind: func(k observer.Kind) observer.Found {
			d.found = observer.Found{}
			if k == observer.ClaimKey && d.claims.Released() {
				d.letGo()
			}
			if k == observer.JobKey {
				d.arrive()
			}
			return d.found
		},
	})
}

func (d *Driver) lookAt(k observer.Key) error {
	switch k.Kind {
	case observer.PoolKey:
		return d.lookAtPool(k.Name)
	case observer.SliceKey:
		found, err := d.inventory.LookAtSlice(d.ctx, d.api(), k.Name)
		d.found.Add(found)
		return err
	case observer.ClaimKey:
		return d.lookAtClaim(k.NamespacedName)
	case observer.NodeKey:
		return d.lookAtNode(k.Name)
	case observer.PodKey:
		return d.lookAtPod(k.NamespacedName)
	default:
		return d.lookAtJob(k.NamespacedName)
	}
}

// again has an object looked at again.
func (d *Driver) again(k observer.Key) { d.found.LookAgain(k) }

// tell adds an event to the answer.
func (d *Driver) tell(e sched.Event) { d.found.Report(e) }

// api is where objects are read.
func (d *Driver) api() observer.API {
	if d.o.Observe {
		return observer.API{Cache: d.o.Client}
	}
	return observer.API{Cache: d.o.Client, Server: d.o.Reader}
}

// get reads an object from the cache.
func (d *Driver) get(key types.NamespacedName, o client.Object) (found bool, err error) {
	return d.api().Get(d.ctx, key, o)
}

// ask reads an object from the API server itself.
func (d *Driver) ask(key types.NamespacedName, o client.Object) (found bool, err error) {
	return d.api().Ask(d.ctx, key, o)
}

// submit gives the crew a task, unless nothing is to be written.
func (d *Driver) submit(line string, task func(ctx context.Context)) {
	if !d.o.Observe {
		d.crew.do(line, task)
	}
}

// Apply has the orders of a plan carried out. It waits for none of them.
func (d *Driver) Apply(ctx context.Context, p sched.Plan) error {
	d.learn()
	d.sweep()
	d.ctx = ctx
	for i := range p.Actions {
		a := &p.Actions[i]
		switch a.Kind {
		case sched.Start:
			d.applyStart(a)
		case sched.Stop:
			d.applyStop(a)
		case sched.WatchEpochs: // the View says whose
		case sched.Rent:
			d.rent(a)
		case sched.SetNode:
			d.setNode(a)
		case sched.Adjust:
			d.o.Log.Debug("power caps are not set here", "job", a.Job, "watts", a.Cap)
		default:
			return fmt.Errorf("driver: action %d is not known here", a.Kind)
		}
	}
	return nil
}

// isLive reports whether an order speaks of the attempt that the View says is alive.
func (d *Driver) isLive(a *sched.Action) bool {
	if a.Job < 0 || int(a.Job) >= len(d.view.Jobs) {
		return false
	}
	j := &d.view.Jobs[a.Job]
	return j.Attempts == a.Attempt && j.HoldsDevices()
}

func (d *Driver) applyStart(o *sched.Action) {
	if !d.isLive(o) {
		return
	}
	a := d.attempts[o.Job]
	if a == nil {
		a = d.newAttempt(o.Job, o.Attempt, o.GPUs, o.Config)
		d.attempts[o.Job] = a
	}
	if !a.begun && a.stop == sched.NoOutcome && a.fate == nil {
		d.start(a)
	}
}

func (d *Driver) applyStop(o *sched.Action) {
	if !d.isLive(o) {
		return
	}
	a := d.attempts[o.Job]
	if a == nil {
		j := &d.view.Jobs[o.Job]
		a = d.newAttempt(o.Job, o.Attempt, j.GPUs, j.Live)
		d.attempts[o.Job] = a
	}
	if a.fate == nil && a.stop == sched.NoOutcome { // else it is ending already, and how is known
		a.stop = o.Why
	}
	if !a.removed {
		d.remove(a)
	}
}

// learn takes note of the numbers that jobs were given.
func (d *Driver) learn() {
	for ; d.counted < len(d.view.Jobs); d.counted++ {
		if s := d.view.Jobs[d.counted].Spec; s.Task != "" {
			d.ids[types.NamespacedName{Namespace: s.User, Name: s.Name}] = sched.JobID(d.counted)
		}
	}
}

// arrive tells of the jobs that are new, in the order in which they were made.
func (d *Driver) arrive() {
	slices.SortFunc(d.arrivals, func(a, b *v1alpha1.TrainingJob) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	id := sched.JobID(len(d.view.Jobs))
	for _, tj := range d.arrivals {
		spec, err := Spec(tj, d.o.Origin, d.o.Types)
		if err != nil && d.ctx.Err() != nil {
			return // who begins anew may know better
		}
		if err != nil {
			d.turnAway(tj, err)
			continue
		}
		if _, others, why := known(tj.Spec.GPUTypes, d.o.Types); why != nil {
			d.o.Event(tj, unknownType, fmt.Sprintf("it goes without GPUs of type %s: %v", strings.Join(others, ", "), why))
		}
		if why := notKept(tj); why != "" {
			d.o.Event(tj, "CheckpointNotKept", why)
		}
		spec.Submit = min(spec.Submit, d.now)
		d.tell(sched.Event{Kind: sched.JobArrived, Spec: spec})
		if tj.Spec.Suspend {
			d.tell(sched.Event{Kind: sched.JobCommanded, Job: id, Code: int32(sched.PauseJob)})
		}
		id++
		d.again(observer.KeyOfJob(client.ObjectKeyFromObject(tj)))
	}
}

// lookAtClaim keeps who holds which device, and removes a claim that belongs to no attempt.
func (d *Driver) lookAtClaim(key types.NamespacedName) error {
	found, c, err := d.claims.Look(d.ctx, d.api(), key, d.inventory.NodeOf)
	d.found.Add(found)
	if c != nil && d.isStrayClaim(c) {
		d.removeStrayClaim(c)
	}
	return err
}

// lookAtNode reports how a node has changed, and has what of that concerns its pool and the attempts on it looked at.
func (d *Driver) lookAtNode(name string) error {
	seen, err := d.inventory.LookAtNode(d.ctx, d.api(), name, inventory.Around{View: d.view, Foreign: d.claims.IsForeign, Pool: d.poolOf, NewPools: d.newPools})
	d.found.Add(seen.Found)
	if err != nil || seen.Node == sched.None {
		return err
	}
	n := &d.view.Nodes[seen.Node]
	switch {
	case !seen.Gone:
		d.mindType(n)
	case n.Busy > 0:
		d.againJobsOn(seen.Node)
	default:
		if p := d.view.PoolOf(n); p != nil { // if it is deleted, that may have been what it waits for
			d.again(observer.KeyOfPool(p.Spec.Name))
			if n.Target == sched.NodeGone && d.o.Provider != nil { // with it one fewer was asked for, be another wanted in its place or not
				d.rent(&sched.Action{Kind: sched.Rent, Pool: n.Spec.Pool, Count: p.Ordered})
			}
		}
	}
	return nil
}

// againJobsOn looks again at the jobs with attempts on a node.
func (d *Driver) againJobsOn(id sched.NodeID) {
	for _, a := range d.attempts {
		if slices.ContainsFunc(a.ranks, func(r rank) bool { return r.node == id }) {
			d.again(observer.KeyOfJob(a.key))
		}
	}
}

// letGo has the pods made of attempts whose devices were given back.
func (d *Driver) letGo() {
	for _, a := range d.attempts {
		if a.waits {
			d.again(observer.KeyOfJob(a.key))
		}
	}
}

// heldBy returns a claim that keeps an attempt from its devices, other than its own; ok is false if there is none.
func (d *Driver) heldBy(a *attempt) (h claims.Holding, ok bool) {
	for r := range a.ranks {
		for _, c := range a.claimsOf(r) {
			if h, held := d.claims.HolderOf(types.NamespacedName{Namespace: a.key.Namespace, Name: c.name}, c.gpus); held {
				return h, true
			}
		}
	}
	return claims.Holding{}, false
}
