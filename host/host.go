package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// Options say what a Host keeps going.
type Options struct {
	Folder string // of the store, for errors; "" = they say themselves what they are about
	Store  Store
	// System returns the system that decides under a header, which knows nothing yet.
	System func(h *eventlog.Header) (sched.Decider, error)
	// Driver returns the driver of a start.
	Driver func(s *Start) (Driver, error)
	Log    *slog.Logger // what users should hear of; nil = no one does

	// Recorder returns new figures, each time the past is heard from its start; nil: there are none.
	Recorder   func() eventlog.Sink
	Forecaster Forecaster // nil: no look into the future
	// History returns the sink of a log that is kept next to the store, for a start; nil: there is none.
	History func(s *Start) (eventlog.Sink, error)
	// Meters returns the sinks that hear last, for a start; nil: there are none.
	Meters func(s *Start) []eventlog.Sink
	// Held returns why a job is paused though its user does not want that; "": it is not. It is called by the goroutine
	// that decides. nil: no job is.
	Held func(id sched.JobID) string
	// Hidden: no one asks how jobs stand, so that no board is kept.
	Hidden bool

	Started func(s *Start)  // called after the first decision of a start; nil: nothing is
	Ended   func(err error) // called when a start has ended and another is to come; nil: nothing is
	Decided func(ns int64)  // called with how long each decision took that changed something; nil: nothing is
}

// Driver is a driver that lets go of all it does, and leaves what runs.
type Driver interface {
	sched.Driver
	Close()
}

// Start is one time that a Host starts to decide: the first, or one after ErrReload.
type Start struct {
	Context context.Context         // of this start
	Stop    context.CancelCauseFunc // ends it, for a reason
	Header  eventlog.Header
	View    *sched.View
	Decider sched.Decider
	Batch   uint64              // the last one of the log that was replayed
	Renewed string              // why the system starts again; "": it goes on
	From    *eventlog.Beginning // the state that was loaded; nil: a log was replayed
	state   *engine.State
}

// Host keeps one world going. It is used by one goroutine, but for its Board and the requests of ask.go.
type Host struct {
	o       Options
	box     *Mailbox
	board   *Board
	feed    *feed
	outlook outlook
	figures eventlog.Sink         // see Options.Recorder
	now     atomic.Pointer[Start] // what was loaded last
	open    []*request            // of a batch of which it is not known whether it became durable
	seen    uint64                // the version before that batch

	up     chan struct{} // closed once requests can be taken
	upOnce sync.Once
	over   chan struct{} // closed once none are any more
	keys   *keyBook      // of the engine's goroutine
}

// Open loads what the store has. The store is the Host's from then on, also where that fails.
func Open(ctx context.Context, o Options) (*Host, error) {
	h := New(o)
	if err := h.load(ctx); err != nil {
		return nil, errors.Join(err, o.Store.Close())
	}
	return h, nil
}

// New returns a Host that has loaded nothing: Run does that.
func New(o Options) *Host {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Host{o: o, box: NewMailbox(), board: NewBoard(), feed: newFeed(), up: make(chan struct{}),
		over:    make(chan struct{}),
		outlook: outlook{turn: make(chan struct{}, 1)}, keys: newKeyBook()}
}

// Close gives the store back.
func (h *Host) Close() error { return h.o.Store.Close() }

// load brings the state to where the past ends. Where all but the last event of a log can be believed, the store takes
// that event out. A log that cannot be read says nothing of what it holds: that is an error, and nothing is taken out.
func (h *Host) load(ctx context.Context) error {
	fault := h.rebuild(ctx)
	q, can := h.o.Store.(Quarantiner)
	if fault == nil || ctx.Err() != nil || !can || !q.Doubt(fault) {
		return fault
	}
	if h.rebuild(ctx) != nil {
		return fault
	}
	return q.Quarantine(fault)
}

// rebuild loads what the store has, and makes the state of it.
func (h *Host) rebuild(ctx context.Context) error {
	past, err := h.o.Store.Load(ctx)
	if err != nil {
		return h.o.named(err)
	}
	s := &Start{Header: past.Header, Renewed: past.Renew, From: past.State}
	if past.Log == nil {
		err = h.restore(s)
	} else {
		err = h.replay(ctx, s, past.Log)
	}
	if err != nil {
		return h.o.named(err)
	}
	h.now.Store(s)
	return nil
}

// named says of which folder an error is.
func (o *Options) named(err error) error {
	if o.Folder == "" {
		return err
	}
	return fmt.Errorf("manager: %s: %w", o.Folder, err)
}

// replay brings the state to the end of a log, from where a system last started again. Where this program would have
// decided otherwise than the one that wrote the log, what was decided holds, and the system starts again with what it
// finds: the log will say so.
func (h *Host) replay(ctx context.Context, s *Start, log *Log) error {
	from := log.From
	if s.Renewed != "" {
		from = math.MaxUint64
	}
	err := h.recover(ctx, s, log, from)
	if astray := (*engine.Divergence)(nil); errors.As(err, &astray) {
		h.o.Log.Warn("this version decides otherwise than the one that wrote the log; going on from where it ended",
			"difference", astray)
		s.Renewed = astray.Error()
		err = h.recover(ctx, s, log, math.MaxUint64)
	}
	return err
}

// recover replays a log with a system that knows nothing and empty books. From the given batch on the system decides it
// all again, which gives it its memory back.
func (h *Host) recover(ctx context.Context, s *Start, log *Log, from uint64) (err error) {
	if s.Decider, err = h.o.System(&s.Header); err != nil {
		return err
	}
	h.restart(nil)
	s.state, s.Batch, err = engine.Recover(ctx, s.Header, log.Records, s.Decider,
		engine.ReplayOptions{Sinks: arrange(order, h.sinks(), true), From: from})
	if err == nil {
		s.View = s.state.View()
	}
	return err
}

// restore makes the state of what was kept, and has the system remember what it did. Where it cannot, it starts again.
func (h *Host) restore(s *Start) (err error) {
	if s.Decider, err = h.o.System(&s.Header); err != nil {
		return err
	}
	if s.state, err = engine.Restore(s.Header, s.From.View); err != nil {
		return err
	}
	s.View = s.state.View()
	h.restart(s.View)
	if s.From.Memory == nil {
		return nil
	}
	if bad := s.From.Memory.Load(s.View, s.Decider); bad != nil {
		h.o.Log.Warn("what the system remembered cannot be used", "why", bad)
		s.Renewed, s.From.Memory = "the system starts again: what it remembered is of another make of it", nil
		s.Decider, err = h.o.System(&s.Header) // what was read in part is worth nothing
	}
	return err
}

// restart has all who hear the past forget it: it is heard again. v is what it is heard from on; nil: from nothing.
func (h *Host) restart(v *sched.View) {
	if h.o.Recorder != nil {
		h.figures = h.o.Recorder()
	}
	if h.o.Forecaster != nil {
		h.o.Forecaster.Restart()
	}
	h.keys = newKeyBook()
	h.feed.restart(v)
	if !h.o.Hidden {
		h.board.restart(v)
	}
}

// sinks are those that hear what is replayed, by role.
func (h *Host) sinks() map[role][]eventlog.Sink {
	sinks := map[role][]eventlog.Sink{feeding: {h.feed}}
	if h.figures != nil {
		sinks[recording] = []eventlog.Sink{h.figures}
	}
	if h.o.Forecaster != nil {
		sinks[estimating] = []eventlog.Sink{h.o.Forecaster}
	}
	if !h.o.Hidden {
		sinks[showing] = []eventlog.Sink{h.board}
	}
	return sinks
}

// Least times between two starts: after ErrReload, and after ErrUndecided.
const (
	reloadEvery = time.Second
	retryEvery  = 5 * time.Second
)

// Run decides until nothing can happen any more (nil), ctx ends, the driver fails or the store does. It is called once.
// When ctx ends, attempts go on, and the next Host of the store finds them.
//
// After ErrReload and ErrUndecided it starts again from what the store has by then.
func (h *Host) Run(ctx context.Context) error {
	defer close(h.over)
	for loaded := h.now.Load() != nil; ; loaded = false {
		pause := time.After(reloadEvery)
		err := h.start(ctx, loaded)
		switch {
		case ctx.Err() != nil:
			return err
		case errors.Is(err, ErrReload):
			h.o.Log.Info("starting again from the API", "why", err)
		case errors.Is(err, ErrUndecided):
			h.o.Log.Warn("no one decides", "why", err)
			pause = time.After(retryEvery)
		default:
			return err
		}
		if h.o.Ended != nil {
			h.o.Ended(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pause:
		}
	}
}

// start decides once, from what was loaded or is loaded now.
func (h *Host) start(ctx context.Context, loaded bool) error {
	if !loaded {
		if err := h.load(ctx); err != nil {
			return err
		}
	}
	s := h.now.Load()
	ctx, s.Stop = context.WithCancelCause(ctx)
	defer s.Stop(nil)
	s.Context = ctx
	if starter, ok := h.o.Store.(Starter); ok {
		if err := starter.Start(s); err != nil {
			return err
		}
	}
	d, err := h.o.Driver(s)
	if err != nil {
		return err
	}
	defer d.Close()
	sinks, err := h.all(s)
	if err != nil {
		return err
	}
	err = h.decide(s, d, sinks)
	return cmp.Or(context.Cause(ctx), err)
}

// all are the sinks of a start.
func (h *Host) all(s *Start) (map[role][]eventlog.Sink, error) {
	sinks := h.sinks()
	sinks[keeping] = []eventlog.Sink{h.o.Store}
	if h.o.History != nil {
		log, err := h.o.History(s)
		if err != nil {
			return nil, err
		}
		sinks[logging] = []eventlog.Sink{log}
	}
	s.From = nil // it may be large
	if h.o.Meters != nil {
		sinks[metering] = h.o.Meters(s)
	}
	return sinks, nil
}

// decide runs the engine.
func (h *Host) decide(s *Start, d sched.Driver, sinks map[role][]eventlog.Sink) error {
	origin, _ := time.Parse(time.RFC3339Nano, s.Header.Origin) // where it is no date the clock goes on from the View's
	desk := NewDesk(h.box, &renewing{d, s.Renewed}, origin)
	desk.due = h.o.Store.Due
	if h.o.Started != nil {
		desk.first = func() { h.o.Started(s) }
	}
	h.settle(s.View.Version)
	h.upOnce.Do(func() { close(h.up) })
	o := engine.Options{Sinks: arrange(order, sinks, false), Decided: h.o.Decided,
		Dropped: func(e *sched.Event, why string) {
			h.o.Log.Debug("a report says nothing new", "event", e.Kind, "job", e.Job, "why", why)
		}}
	if began := time.Now(); o.Decided != nil {
		o.Clock = func() int64 { return int64(time.Since(began)) }
	}
	err := engine.Run(s.Context, s.state, desk, s.Decider, o)
	h.open, h.seen = desk.unconfirmed(), desk.version
	return err
}

// settle answers the requests of a batch that an earlier start was cut short in: what was loaded since has the batch,
// or they come again.
func (h *Host) settle(version uint64) {
	if version > h.seen {
		for _, r := range h.open {
			close(r.durable)
		}
	} else {
		h.box.putBack(h.open)
	}
	h.open = nil
}

// renewing is a driver whose first answer starts with the news, if there is a reason, that a system starts again.
type renewing struct {
	sched.Driver
	why string // "": it goes on
}

// Sync is that of the driver, behind the news.
func (r *renewing) Sync(ctx context.Context, v *sched.View) ([]sched.Event, error) {
	now := v.Now
	events, err := r.Driver.Sync(ctx, v)
	if r.why != "" {
		events = append([]sched.Event{{Time: now, Kind: sched.Renewed, Text: r.why}}, events...)
	}
	return events, err
}

// Header returns how the log starts: who decides, on what. It is empty while nothing is loaded.
func (h *Host) Header() eventlog.Header {
	if s := h.now.Load(); s != nil {
		return s.Header
	}
	return eventlog.Header{}
}

// Resumed reports whether the log had events when it was loaded.
func (h *Host) Resumed() bool { return h.now.Load().Batch > 0 }

// View is the state as the engine's goroutine sees it.
func (h *Host) View() *sched.View { return h.now.Load().View }

// Brief returns what Look's f may ask why jobs of v do not run, as shortly as lists do.
func (h *Host) Brief(v *sched.View) *pipeline.Brief {
	b := pipeline.NewBrief(v, h.now.Load().Decider)
	b.Held = h.o.Held
	return b
}

// Pricer returns what puts a price on GPUs; nil = the system that decides puts none on them. Its answers are for Look.
func (h *Host) Pricer() sched.Pricer { return pipeline.PricerOf(h.now.Load().Decider) }

// Board shows how the jobs stand.
func (h *Host) Board() *Board { return h.board }
