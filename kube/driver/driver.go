package driver

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/admission"
	"github.com/trainyard/trainyard/kube/driver/attempts"
	"github.com/trainyard/trainyard/kube/driver/claims"
	"github.com/trainyard/trainyard/kube/driver/inventory"
	"github.com/trainyard/trainyard/kube/driver/jobs"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/pools"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/sched"
)

// Driver runs attempts as pods. Its methods belong to one goroutine, that of the engine. It passes each step of a look
// what that needs of the other parts, which do not know each other's fields.
type Driver struct {
	o     Options
	api   observer.API
	view  *sched.View
	clock clock

	observer  *observer.Observer
	inventory *inventory.Inventory
	claims    *claims.Claims
	jobs      *jobs.Jobs
	attempts  *attempts.Attempts
	pools     *pools.Pools
	writers   *writer.Writers
	objects   *writer.Objects
	made      *observer.Made
	strangers map[types.UID]bool   // pods that use a claim of ours and are none of ours
	gate      *admission.Gate      // nil: the API server is not asked
	unsure    map[sched.JobID]bool // jobs that may be given free GPUs alone
	given     types.UID            // the one that was let go, or arrives, in the look under way
}

var _ sched.Driver = (*Driver)(nil)

// New returns a driver. Nothing is written before Sync.
func New(o Options) *Driver {
	o.fill()
	push := func(k observer.Key) { o.Queue.Push(k) }
	w, made := writer.NewWriters(o.Lease, o.Observe, o.Log), observer.NewMade()
	d := &Driver{
		o: o, api: o.api(), writers: w, made: made, strangers: make(map[types.UID]bool),
		observer: observer.New(o.Queue, o.Log),
		inventory: inventory.New(inventory.Options{
			Mode: o.Mode, Types: o.Types, NewType: o.NewType, Log: o.Log, Event: o.Event,
		}),
		claims: claims.New(o.Log, o.Event),
		attempts: attempts.New(attempts.Options{
			Mode: o.Mode, StartTimeout: o.StartTimeout, Idle: o.Observe, Every: o.Every, Deaf: o.Deaf,
			Follower: o.Follower, Delayed: o.Delayed, Holds: o.Ask, Go: w.Go, Look: push, Log: o.Log,
		}),
		pools: pools.New(pools.Options{
			Client: o.Client, Reader: o.Reader, Types: o.Types, Provider: o.Provider, Event: o.Event, Look: push,
			Log: o.Log,
		}, w),
		objects: writer.NewObjects(writer.Options{
			Client: o.Client, Reader: o.Reader, Look: push, Made: made, DeviceClass: o.DeviceClass,
			PriorityClass: o.PriorityClass,
		}, w),
		unsure: make(map[sched.JobID]bool),
	}
	j := jobs.Options{Origin: o.Origin, Types: o.Types, Event: o.Event,
		KeepJobs: !observer.UsesClaims(o.Mode) && !o.Observe, Hold: o.Held, Limits: o.Limits,
		Bad: o.Bad, Mended: o.Mended, Annotations: []string{v1alpha1.AnnotationDeletion, writer.AnnotationPace}}
	if o.Ask && !o.Observe {
		d.gate = admission.New(admission.Options{Try: d.try, Go: w.Go, Look: push})
		j.Admit = d.admit
	}
	d.jobs = jobs.New(j)
	return d
}

// Close calls off what is not written yet, and returns once nothing of the driver is at work. Attempts go on.
func (d *Driver) Close() { d.writers.Close() }

// Now returns the instant of the last answer.
func (d *Driver) Now() sched.Time { return d.clock.now }

// Apply has the orders of a plan carried out. It waits for none of them.
func (d *Driver) Apply(ctx context.Context, p sched.Plan) error {
	d.catchUp()
	for i := range p.Actions {
		a := &p.Actions[i]
		switch a.Kind {
		case sched.Start:
			d.start(ctx, a)
		case sched.Stop:
			d.stop(a)
		case sched.WatchEpochs: // the View says of which attempts
		case sched.Rent:
			d.pools.Rent(ctx, a.Pool, a.Count, d.nodes())
		case sched.SetNode:
			d.pools.SetNode(d.view, a)
		case sched.Adjust:
			d.o.Log.Debug("power caps are not set here", "job", a.Job, "watts", a.Cap)
		default:
			return fmt.Errorf("driver: action %d is not known here", a.Kind)
		}
	}
	return nil
}

// catchUp takes note of what the engine has made durable since the last answer.
func (d *Driver) catchUp() {
	d.jobs.Learn(d.view)
	d.objects.Sweep(d.attempts.IsAlive)
}

// isLive reports whether an order is about the attempt that the View says is alive.
func (d *Driver) isLive(a *sched.Action) bool {
	if a.Job < 0 || int(a.Job) >= len(d.view.Jobs) {
		return false
	}
	j := &d.view.Jobs[a.Job]
	return j.Attempts == a.Attempt && j.HoldsDevices()
}

// start has the objects of an attempt made, unless they are or it is ending.
func (d *Driver) start(ctx context.Context, o *sched.Action) {
	if !d.isLive(o) {
		return
	}
	a := d.attempts.Order(d.view, o)
	if a == nil {
		return
	}
	tj, err := jobs.Find(ctx, d.api, a.Key, a.UID)
	if missing := a.FindDevices(d.inventory, d.view); err == nil {
		err = missing
	}
	d.attempts.Started(o.Job, err)
	if err == nil {
		d.objects.Start(a, d.jobs.Bounded(tj))
	}
}

// stop has the pods of an attempt deleted, unless they are being deleted.
func (d *Driver) stop(o *sched.Action) {
	if d.isLive(o) {
		d.remove(d.attempts.Stop(d.view, o))
	}
}

func (d *Driver) remove(r *attempts.Removal) {
	if r != nil {
		d.objects.Remove(r.Attempt, r.Ending)
	}
}

// clock is the time of the driver. It never falls, whatever happens to the clock of the machine.
type clock struct {
	now   sched.Time // of the last answer
	start time.Time  // with a monotonic reading, at at
	at    sched.Time
}

// clockFrom returns a clock whose time 0 was at origin, and which is not before now.
func clockFrom(origin time.Time, now sched.Time) clock {
	start := time.Now()
	c := clock{now: now, start: start, at: max(sched.Time(start.Sub(origin)), now)}
	c.now = c.read()
	return c
}

// read returns the time.
func (c *clock) read() sched.Time { return max(c.at.Add(time.Since(c.start)), c.now) }
