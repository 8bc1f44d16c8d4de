package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// Options say what a controller works with.
type Options struct {
	Client    client.Client // writes, and reads from the cache
	Reader    client.Reader // reads what the API has now
	Namespace string        // of its own ConfigMaps
	Version   string        // of this program
	Clock     func() time.Time
	Log       *slog.Logger
	// Record is told the log of this leader as lines of JSON: of each beginning a part that replays on its own, each batch as one write.
	// nil = nobody is.
	Record  io.Writer
	Held    func() error // returns an error once another may lead
	Observe bool         // decide and tell, and write nothing
	Metrics *Metrics     // nil = none
	// Driver makes the driver of a loaded state.
	Driver func(Setup) (Driver, error)

	tell  func(...note)    // Events, once what they say is durable
	every time.Duration    // how often it is looked whether what was told of jobs is so still; 0 = retellEvery
	fatal func(error) bool // errors of the API after which there is no sense in another try, beside those that say so; nil = none
}

// Driver is a driver that lets go of all it does, and leaves what runs.
type Driver interface {
	sched.Driver
	Close()
}

// Controller decides while it leads.
type Controller struct {
	o       Options
	skipped map[string]bool // nodes that were numbered as if they joined, and did not
}

// New returns a controller.
func New(o Options) *Controller {
	if o.tell == nil {
		o.tell = func(...note) {}
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
	return &Controller{o, make(map[string]bool)}
}

// Run leads until ctx ends, which is nil, or another does, which is ErrFenced. It begins anew from what the API has whenever the
// driver returns ErrReload: another system, other pools, GPUs of a kind not known before. It does so once in reloadEvery at most.
func (c *Controller) Run(ctx context.Context) error {
	defer c.o.Metrics.standing.Store(nil)
	for ctx.Err() == nil {
		pause := time.After(reloadEvery)
		err := c.run(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrReload):
			c.o.Log.Info("beginning anew from the API", "why", err)
			select {
			case <-ctx.Done():
			case <-pause:
			}
		case errors.Is(err, errUndecided):
			c.o.Log.Warn("nobody decides", "why", err)
			c.o.Metrics.standing.Store(nil)
			select {
			case <-ctx.Done():
			case <-time.After(retryPolicy):
			}
		default:
			return err
		}
	}
	return nil
}

// errUndecided says that of the policy, the cluster and the records as they are nobody can go on.
var errUndecided = errors.New("nobody can decide")

// retryPolicy is how long after that they are looked at again, and reloadEvery the least time between two beginnings.
const (
	retryPolicy = 5 * time.Second
	reloadEvery = time.Second
)

func (c *Controller) run(ctx context.Context) error {
	l, err := c.load(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	l.store.ctx = ctx
	go c.watchFiles(ctx, l.files, filesEvery, stop)
	d, err := c.o.Driver(l.setup(ctx, stop))
	if err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	defer d.Close()
	sinks, wake := []eventlog.Sink{l.store}, l.store.wake
	if c.o.Observe {
		wake = func() sched.Time { return sched.Never }
		sinks[0] = &observer{log: c.o.Log, v: l.state.View(), dec: l.system.Decider, origin: l.origin}
	}
	if c.o.Record != nil {
		h, bad := newHistory(c.o.Record, c.o.Log, l.header, &l.from)
		if bad != nil {
			return bad
		}
		l.from = eventlog.Beginning{} // it may be large
		sinks = append([]eventlog.Sink{h}, sinks...)
	}
	sinks = append(sinks, newMeter(c.o.Metrics, l.state.View()))
	dropped := func(e *sched.Event, why string) {
		c.o.Log.Debug("a report says nothing new", "event", e.Kind, "job", e.Job, "why", why)
	}
	start := time.Now()
	o := engine.Options{Sinks: sinks, Dropped: dropped, Clock: func() int64 { return int64(time.Since(start)) },
		Decided: func(ns int64) { c.o.Metrics.decisionTook.Observe(float64(ns) / 1e9) }}
	err = engine.Run(ctx, l.state, &begins{Driver: d, l: l, skipped: c.skipped, begun: c.begun, wake: wake}, l.system.Decider, o)
	return cmp.Or(context.Cause(ctx), err)
}

// begun tells of the first decision.
func (c *Controller) begun(l *loaded) {
	v, what, nodes := l.state.View(), "leading", 0
	if c.o.Observe {
		what = "looking on"
	}
	for i := range v.Nodes {
		if v.Nodes[i].Joined() {
			nodes++
		}
	}
	c.o.Log.Info(what, "system", l.header.System, "nodes", nodes, "gpus", v.Capacity())
}
