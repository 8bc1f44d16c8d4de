package controller

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/host"
)

// Options say what a controller works with.
type Options struct {
	Client    client.Client // writes, and reads from the cache
	Reader    client.Reader // reads what the API has now
	Namespace string        // of its own ConfigMaps
	Version   string        // of this program
	Clock     func() time.Time
	Log       *slog.Logger
	// Record gets the log of this leader as lines of JSON: of each start a part that replays on its own, each
	// batch as one write. nil = no record.
	Record  io.Writer
	Held    func() error // returns an error once another may lead
	Observe bool         // decide and report, and write nothing
	// RecordSchema is that in which records of jobs are written; 0: the newest.
	RecordSchema int
	Metrics      *Metrics // nil = none
	// Driver makes the driver of a loaded state.
	Driver func(Setup) (Driver, error)
	// Host is called with what answers those who ask how jobs stand, before it decides; nil: no one asks.
	Host func(h *host.Host)

	shardNodes int // nodes of a shard of the cluster; 0: record.ShardNodes
	maxBlob    int // bytes of a ConfigMap; 0: maxBlob

	report func(...note) // Events, once what they say is durable
	every  time.Duration // how often it is looked whether what was reported of jobs is so still; 0 = retellEvery
	// errors of the API after which there is no sense in another try, in addition to those that say so; nil = none
	fatal func(error) bool
}

// Driver is a driver that lets go of all it does, and leaves what runs.
type Driver = host.Driver

// Controller decides while it leads.
type Controller struct {
	o       Options
	skipped map[string]bool // nodes that were numbered as if they joined, and did not
}

// New returns a controller.
func New(o Options) *Controller {
	if o.report == nil {
		o.report = func(...note) {}
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
	return &Controller{o, make(map[string]bool)}
}

// Run leads until ctx ends, which is nil, or another does, which is ErrFenced. It starts again from what the API has
// whenever the driver returns ErrReload: another system, other pools, GPUs of a kind not known before.
func (c *Controller) Run(ctx context.Context) error {
	defer c.o.Metrics.standing.Store(nil)
	k := &keeper{c: c}
	o := host.Options{Store: k, System: k.system, Driver: k.drive, Log: c.o.Log, Hidden: c.o.Host == nil,
		Started: c.begun, Ended: c.ended, Held: k.whyHeld,
		Meters:  func(s *host.Start) []eventlog.Sink { return []eventlog.Sink{newMeter(c.o.Metrics, s.View)} },
		Decided: func(ns int64) { c.o.Metrics.decisionTook.Observe(float64(ns) / 1e9) }}
	if c.o.Record != nil {
		o.History = func(s *host.Start) (eventlog.Sink, error) {
			return newHistory(c.o.Record, c.o.Log, s.Header, s.From)
		}
	}
	h := host.New(o)
	if c.o.Host != nil {
		c.o.Host(h)
	}
	err := h.Run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// begun logs the first decision.
func (c *Controller) begun(s *host.Start) {
	v, what, nodes := s.View, "leading", 0
	if c.o.Observe {
		what = "looking on"
	}
	for i := range v.Nodes {
		if v.Nodes[i].Joined() {
			nodes++
		}
	}
	c.o.Log.Info(what, "system", s.Header.System, "nodes", nodes, "gpus", v.Capacity())
}

// ended has no figures of jobs be published where no one can decide.
func (c *Controller) ended(err error) {
	if errors.Is(err, host.ErrUndecided) {
		c.o.Metrics.standing.Store(nil)
	}
}
