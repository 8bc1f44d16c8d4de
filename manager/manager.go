// Package manager runs jobs on one machine: it wires the engine, a system, the driver of local processes and the durable
// log together, and takes up again where the last manager of a folder left off.
package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainyard/trainyard/driver/local"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/failpoint"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/manager/store"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/whatif"
)

// Options say what a manager runs, where and how.
type Options struct {
	Dir      string         // its folder: the log, run directories, checkpoints
	Jobs     *jobfile.File  // to be run; nil = they are handed in, see Submit, and Run goes on until its context ends
	Devices  device.Backend // to run them on
	Place    string         // what Devices are, in words: part of the log's header
	Unit     string         // what one of them is called: GPU or slot
	System   string         // who decides
	Settings map[string]string
	Budget   float64          // slots in use on average, for systems that rent: they are lent one by one then; 0 = all are there always
	Round    time.Duration    // decisions at multiples of it only; 0 = the system's own
	Knows    system.Knowledge // from files that keys of the system name
	Shim     []string         // see local.Options
	Tell     time.Duration    // see local.Options
	Version  string           // of this program
	Log      *slog.Logger     // what users should hear of; nil = nobody does
	Sinks    []eventlog.Sink  // told every new event, and last whenever a batch is durable
	Decided  func(ns int64)   // told how long each decision took that changed something; nil = nobody is
}

// Check says what is wrong with the system and its settings.
func (o *Options) Check(ctx context.Context) error {
	h, err := o.header(ctx)
	if err == nil {
		_, err = System(&h, o.Knows)
	}
	if err == nil {
		err = Fits(&h, o.jobs(), o.Unit)
	}
	return err
}

// jobs are those known beforehand.
func (o *Options) jobs() []jobfile.Job {
	if o.Jobs == nil {
		return nil
	}
	return o.Jobs.Jobs
}

// trace names the jobs by what they mean.
func (o *Options) trace() string {
	if o.Jobs == nil {
		return "jobs as they are handed in"
	}
	return "jobs " + o.Jobs.Hash
}

// header begins a log on the devices there are.
func (o *Options) header(ctx context.Context) (eventlog.Header, error) {
	list, err := o.Devices.List(ctx)
	if err != nil {
		return eventlog.Header{}, fmt.Errorf("manager: devices: %w", err)
	}
	host, _ := os.Hostname()
	h := eventlog.Header{Version: o.Version, Origin: time.Now().UTC().Format(time.RFC3339Nano), Zone: "UTC", Trace: o.trace(),
		Cluster: host + ": " + o.Place, System: o.System, Settings: o.Settings, Round: o.Round, Types: device.Types(list), GPUs: len(list)}
	if o.Budget > 0 {
		h.Budget, h.Pools, h.NodeGPUs = o.Budget, local.Pools(list), 1
		return h, nil
	}
	for _, t := range h.Types {
		n := 0
		for i := range list {
			if list[i].Type == t {
				n++
			}
		}
		h.NodeGPUs = max(h.NodeGPUs, n)
	}
	return h, nil
}

// ErrOther says that a folder was begun with other jobs or another system.
var ErrOther = errors.New("begun with another")

// Manager is the manager of a folder. It is used by one goroutine, but for its Board and the requests of requests.go.
type Manager struct {
	o        Options
	store    *store.Store
	header   eventlog.Header
	dec      sched.Decider
	state    *engine.State
	batch    uint64
	recorder *metrics.Recorder
	board    *Board
	feed     *feed
	lost     *whatif.Displacements // of Run's goroutine
	steps    *whatif.Steps         // of Run's goroutine
	renewed  string                // why the system begins anew; "" = it goes on
	before   uint64                // the log is read up to here
	aside    []store.Aside

	up       chan struct{}            // closed once Run can take requests
	over     chan struct{}            // closed once it takes none any more
	driver   *local.Driver            // from up on
	changing map[sched.JobID]changing // of Run's goroutine
}

// Open takes the folder and brings the state to where its log ends. store.ErrBusy: another manager has it. ErrOther: it
// was begun with other jobs or another system. A log that cannot be read is an error, never an empty one.
func Open(ctx context.Context, o Options) (_ *Manager, err error) {
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	err = o.Check(ctx) // before the folder is touched
	if err != nil {
		return nil, err
	}
	if o.Settings, err = system.LiveDefaults(o.System, o.Settings); err != nil {
		return nil, err
	}
	s, err := store.Open(o.Dir)
	if err != nil {
		return nil, err
	}
	m := &Manager{o: o, store: s, before: math.MaxInt64, up: make(chan struct{}), over: make(chan struct{}),
		changing: make(map[sched.JobID]changing)}
	if err = m.begin(ctx); err == nil {
		err = m.recover(ctx)
	}
	if err == nil {
		err = m.tellAside()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return m, nil
}

// begin writes the header of a new log, or checks that of an old one.
func (m *Manager) begin(ctx context.Context) error {
	begun, err := m.store.Begun()
	if err != nil {
		return err
	}
	if !begun {
		h, failed := m.o.header(ctx)
		if failed == nil {
			_, failed = System(&h, m.o.Knows) // notes how many may share a device
		}
		if failed != nil {
			return failed
		}
		return m.store.Begin(h)
	}
	h, err := m.logged()
	switch {
	case err != nil:
		return err
	case h.Trace != m.o.trace():
		return fmt.Errorf("manager: %s: %w job file, or an older version of this one; give the new one a folder of its own by --state", m.o.Dir, ErrOther)
	case (h.Budget > 0) != (m.o.Budget > 0):
		return fmt.Errorf("manager: %s: %w budget: %v slots, now %v, 0 being none; give it a folder of its own", m.o.Dir, ErrOther, h.Budget, m.o.Budget)
	case m.o.same(&h):
		return nil
	case m.o.Jobs == nil:
		return m.change(h)
	default:
		return fmt.Errorf("manager: %s: %w system: %s, now %s; give it a folder of its own", m.o.Dir, ErrOther,
			systemText(h.System, h.Settings), systemText(m.o.System, m.o.Settings))
	}
}

// same reports whether the one of header h decides, and alike.
func (o *Options) same(h *eventlog.Header) bool {
	return h.System == o.System && maps.Equal(h.Settings, o.Settings) && h.Budget == o.Budget
}

// change has another system go on with what the one of header h leaves.
func (m *Manager) change(h eventlog.Header) error {
	m.renewed = eventlog.GivesWay(systemText(h.System, h.Settings), systemText(m.o.System, m.o.Settings))
	most := h.ShareLimit // of what may be shared already
	h.System, h.Settings, h.Budget = m.o.System, m.o.Settings, m.o.Budget
	if _, err := System(&h, m.o.Knows); err != nil {
		return err
	}
	h.ShareLimit = max(h.ShareLimit, most)
	m.o.Log.Info("another system goes on", "change", m.renewed)
	return m.store.Change(h)
}

// systemText names a system with its keys.
func systemText(name string, settings map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		name += " " + key + "=" + settings[key]
	}
	return name
}

// logged reads the header of the log.
func (m *Manager) logged() (eventlog.Header, error) {
	r, done, err := m.open()
	if err != nil {
		return eventlog.Header{}, err
	}
	return r.Header(), done()
}

// open begins to read the log.
func (m *Manager) open() (*eventlog.Reader, func() error, error) {
	lines, err := m.store.LinesBefore(m.before)
	if err != nil {
		return nil, nil, err
	}
	r, err := eventlog.NewReader(lines, m.o.Dir)
	if err != nil {
		return nil, nil, errors.Join(err, lines.Close())
	}
	return r, lines.Close, nil
}

// recover brings the state to where the log ends. Where all but the last event can be believed, that one is set aside, see Problems;
// the folder of an attempt that it told of has the driver refuse to go on. A log that cannot be read says nothing of what it holds: that
// is an error, and nothing is set aside.
func (m *Manager) recover(ctx context.Context) error {
	fault := m.rebuild(ctx)
	if !blamed(fault) || ctx.Err() != nil {
		return fault
	}
	last, err := m.store.Last()
	if err != nil || last <= 1 {
		return fault
	}
	m.before = last
	if err := m.rebuild(ctx); err != nil {
		return fault
	}
	m.before = math.MaxInt64
	return m.store.SetAside(last, fault.Error())
}

// blamed reports whether a fault is the log's own.
func blamed(fault error) bool { return fault != nil && !errors.Is(fault, store.ErrUnread) }

// rebuild replays the log, from where a system last began anew. Where this program would have decided otherwise than the
// one that wrote the log, what was decided holds, and the system begins anew with what it finds: the log will say so.
func (m *Manager) rebuild(ctx context.Context) error {
	from, err := m.store.LastWith(eventlog.RenewedMark, m.before)
	if m.renewed != "" { // by us, just now
		from = math.MaxUint64
	}
	if err == nil {
		err = m.replay(ctx, from)
	}
	if astray := (*engine.Divergence)(nil); errors.As(err, &astray) {
		m.o.Log.Warn("this version decides otherwise than the one that wrote the log; going on from where it ended", "difference", astray)
		m.renewed = astray.Error()
		err = m.replay(ctx, math.MaxUint64)
	}
	if err != nil {
		return fmt.Errorf("manager: %s: %w", m.o.Dir, err)
	}
	return nil
}

// replay brings the state to the end of the log. From the given batch on the system decides it all again, which gives it
// its memory back.
func (m *Manager) replay(ctx context.Context, from uint64) error {
	r, done, err := m.read()
	if err != nil {
		return err
	}
	m.state, m.batch, err = engine.Recover(ctx, m.header, r.Records(), m.dec,
		engine.ReplayOptions{Sinks: []eventlog.Sink{m.recorder, m.lost, m.steps, m.board, m.feed}, From: from})
	return errors.Join(err, done())
}

// read begins anew with the log, a system that knows nothing and empty books.
func (m *Manager) read() (*eventlog.Reader, func() error, error) {
	r, done, err := m.open()
	if err != nil {
		return nil, nil, err
	}
	m.header = r.Header()
	h := m.header
	sys, err := System(&h, m.o.Knows)
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	m.dec = sys.Decider
	m.recorder, m.board = metrics.NewRecorder(len(m.o.jobs())), NewBoard()
	m.feed = &feed{news: make(chan struct{})}
	m.lost, m.steps = new(whatif.Displacements), new(whatif.Steps)
	return r, done, nil
}

// Resumed reports whether the log has events already.
func (m *Manager) Resumed() bool { return m.batch > 0 }

// Run runs the jobs until all that can be done is done. It is called once. When ctx ends, attempts go on, and the next manager of the folder
// finds them.
func (m *Manager) Run(ctx context.Context) error {
	epoch, err := m.store.NextEpoch()
	if err != nil {
		return err
	}
	failpoint.Here("epoch")
	origin, err := time.Parse(time.RFC3339Nano, m.header.Origin)
	if err != nil {
		return fmt.Errorf("manager: origin of the log: %w", err)
	}
	host, _ := os.Hostname()
	d, err := local.New(local.Options{State: shim.State(m.o.Dir), Epoch: epoch, Origin: origin, Node: host, Devices: m.o.Devices, Types: m.header.Types,
		Jobs: arrivals(m.o.jobs()), Endless: m.o.Jobs == nil, Shim: m.o.Shim, Tell: m.o.Tell, Lend: len(m.header.Pools) > 0, Log: m.o.Log})
	if err != nil {
		return err
	}
	defer d.Close()
	defer close(m.over)
	m.driver = d
	close(m.up)
	// The board and those who watch come after the log: what they say is durable by then.
	sinks := append([]eventlog.Sink{m.recorder, m.lost, m.steps, m.store.Writer(m.batch), m.board, m.feed}, m.o.Sinks...)
	dropped := func(e *sched.Event, why string) {
		m.o.Log.Debug("a report says nothing new", "event", e.Kind, "job", e.Job, "why", why)
	}
	o := engine.Options{Sinks: sinks, Dropped: dropped, Decided: m.o.Decided}
	if began := time.Now(); o.Decided != nil {
		o.Clock = func() int64 { return int64(time.Since(began)) }
	}
	return engine.Run(ctx, m.state, begins{d, m.renewed}, m.dec, o)
}

// begins is a driver that tells first, if there is a reason, that a system begins anew.
type begins struct {
	sched.Driver
	why string // "" = it goes on
}

// Sync is that of the driver, behind the news.
func (b begins) Sync(ctx context.Context, v *sched.View) ([]sched.Event, error) {
	now := v.Now
	events, err := b.Driver.Sync(ctx, v)
	if b.why != "" {
		events = append([]sched.Event{{Time: now, Kind: sched.Renewed, Text: b.why}}, events...)
	}
	return events, err
}

// Result returns the figures so far, and the jobs one by one.
func (m *Manager) Result() (metrics.Result, []metrics.Job) {
	return m.recorder.Result(m.header.System), m.recorder.Jobs
}

// WriteLog writes the log so far as lines of JSON.
func (m *Manager) WriteLog(w io.Writer) error {
	lines, err := m.store.Lines()
	if err != nil {
		return err
	}
	_, err = io.Copy(w, lines)
	return errors.Join(err, lines.Close())
}

// Board tells how the jobs stand.
func (m *Manager) Board() *Board { return m.board }

// Close gives the folder back.
func (m *Manager) Close() error { return m.store.Close() }

// arrivals are the jobs as the driver takes them.
func arrivals(jobs []jobfile.Job) []local.Arrival {
	list := make([]local.Arrival, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		list[i] = local.Arrival{At: j.Submit, Spec: j.Spec}
		list[i].Spec.Task = j.Task.Encode()
	}
	return list
}
