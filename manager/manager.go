// Package manager runs jobs on one machine: it wires the engine, a system, the driver of local processes and the
// durable log together, and takes up again where the last manager of a folder left off.
package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/ports"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/internal/failpoint"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/manager/store"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// Options say what a manager runs, where and how.
type Options struct {
	Dir      string         // its folder: the log, run directories, checkpoints
	Jobs     *jobfile.File  // to be run; nil = they are submitted, see Submit, and Run goes on until its context ends
	Devices  device.Backend // to run them on
	Place    string         // what Devices are, in words: part of the log's header
	Unit     string         // what one of them is called: GPU or slot
	System   string         // who decides
	Settings map[string]string
	// slots in use on average, for systems that rent: they are offered one by one then; 0 = all are there always
	Budget  float64
	Round   time.Duration     // decisions at multiples of it only; 0 = the system's own
	Knows   system.Knowledge  // from files that keys of the system name
	Shim    []string          // see local.Options
	Report  time.Duration     // see local.Options
	Look    time.Duration     // see local.Options
	Ports   ports.Range       // see local.Options
	Machine device.Machine    // see local.Options
	Inherit map[string]string // what those of Jobs inherit that are to; nil = none came with them
	// the largest priority that who is no admin may give a job; <= 0: 0
	UserPriority int32

	Keep    time.Duration   // for how long run folders of jobs that are done are kept; 0 = for ever
	Version string          // of this program
	Log     *slog.Logger    // what users should hear of; nil = no one does
	Sinks   []eventlog.Sink // hear every new event, and last whenever a batch is durable
	Decided func(ns int64)  // hears how long each decision took that changed something; nil = none does
	Notices Notices         // to the users of jobs; nil = nothing is known of them
}

// Notices knows what users heard of their jobs. Anyone may ask at any time.
type Notices interface {
	// Unheard says what users did not hear of, and why, in sentences.
	Unheard() []string
	// Tried says what was sent last in each way of a job, or of its array, of which first is the first task.
	Tried(first sched.JobID, ways []task.Notify) []api.NoticeState
}

// Check says what is wrong with the system and its settings.
func (o *Options) Check(ctx context.Context) error {
	h, err := o.header(ctx)
	if err == nil {
		_, err = System(&h, o.Knows)
	}
	if err == nil {
		err = cmp.Or(Fits(&h, o.jobs(), o.Unit), CheckOutputs(o.jobs()), o.fitsMachine(o.jobs()))
	}
	if _, fresh := os.Stat(filepath.Join(o.Dir, store.FileName)); err == nil && fresh != nil { // else they are known
		err = ranked(&h, o.jobs())
	}
	if err == nil {
		_, err = o.known(ctx, h.Types)
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

// known are the jobs known beforehand, with the types of GPUs that they take.
func (o *Options) known(ctx context.Context, types []string) ([]jobfile.Job, error) {
	if !slices.ContainsFunc(o.jobs(), choosy) {
		return o.jobs(), nil
	}
	list, err := o.Devices.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("manager: devices: %w", err)
	}
	return o.typed(types, list, o.jobs())
}

// trace names the jobs by what they mean.
func (o *Options) trace() string {
	if o.Jobs == nil {
		return "jobs as they are handed in"
	}
	return "jobs " + o.Jobs.Hash
}

// header starts a log on the devices there are.
func (o *Options) header(ctx context.Context) (eventlog.Header, error) {
	list, err := o.Devices.List(ctx)
	if err != nil {
		return eventlog.Header{}, fmt.Errorf("manager: devices: %w", err)
	}
	host, _ := os.Hostname()
	h := eventlog.Header{Version: o.Version, Origin: time.Now().UTC().Format(time.RFC3339Nano), Zone: "UTC",
		Trace:   o.trace(),
		Cluster: host + ": " + o.Place, System: o.System, Settings: o.Settings, Round: o.Round,
		Types: device.Types(list), GPUs: len(list)}
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

// ErrOther says that a folder was started with other jobs or another system.
var ErrOther = errors.New("started with another")

// Manager keeps the jobs of a folder going. It is used by one goroutine, but for its Board and the requests of
// submit.go and package host.
type Manager struct {
	*host.Host

	o        Options
	kept     *keeper
	room     *room
	recorder *metrics.Recorder
	line     *timeline.Timeline
	driver   atomic.Pointer[local.Driver] // once Run has one
	inherit  inheritance
	scripts  scripts
	foretold foretold
}

// Open takes the folder and brings the state to where its log ends. store.ErrBusy: another manager has it. ErrOther: it
// was started with other jobs or another system. A log that cannot be read is an error, never an empty one.
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
	given := o.Settings
	if o.Settings, err = system.LiveDefaults(o.System, given); err != nil {
		return nil, err
	}
	s, err := store.Open(o.Dir)
	if err != nil {
		return nil, err
	}
	disk := &room{dir: o.Dir, log: o.Log}
	m := &Manager{o: o, room: disk, kept: &keeper{Store: s, dir: o.Dir, before: math.MaxInt64, room: disk}}
	if err = m.begin(ctx, given); err == nil {
		err = m.giveKnown(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	disk.look()
	m.Host, err = host.Open(ctx, host.Options{Folder: o.Dir, Store: m.kept, System: m.fresh, Driver: m.drive,
		Log:      o.Log,
		Recorder: m.record, Forecaster: new(forecaster), Decided: o.Decided,
		Meters: func(s *host.Start) []eventlog.Sink {
			for _, sink := range o.Sinks {
				if r, can := sink.(interface{ Restart(v *sched.View) }); can {
					r.Restart(s.View)
				}
			}
			return o.Sinks
		}})
	if err != nil && m.kept.faulty && !errors.Is(err, store.ErrDamaged) {
		return nil, fmt.Errorf("%w; put a copy of the log from before back, or use what of it can be used by "+
			"`trainyard doctor --repair`: jobs that run go on to their end", err)
	}
	if err != nil {
		return nil, err
	}
	debug.FreeOSMemory() // reading a long log takes as much again as what is known then
	if err := m.kept.warn(o.Log); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// serve is Run of the host, while the room on the disk is watched, and old runs are removed. A disk that is full does
// not end it.
func (m *Manager) serve(ctx context.Context) error {
	watched, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	others.Go(func() {
		m.room.watch(watched, func() { _ = m.Post(watched, nothing) }) // has the driver look
	})
	if m.o.Keep > 0 {
		others.Go(func() { m.cleanUp(watched) })
	}
	defer func() { stop(); others.Wait() }()
	return m.Host.Run(ctx)
}

// nothing is what no event comes of.
func nothing(*sched.View, sched.JobID, sched.Time) []sched.Event { return nil }

// hold is why no job may be started; "" = they may.
func (m *Manager) hold() string {
	if m.room.full.Load() {
		return "the disk of the state folder is full"
	}
	return ""
}

// fresh makes the system that decides under a header, and leaves that as it was logged.
func (m *Manager) fresh(h *eventlog.Header) (sched.Decider, error) {
	logged := *h
	sys, err := System(&logged, m.o.Knows)
	return sys.Decider, err
}

// record starts with new figures.
func (m *Manager) record() eventlog.Sink {
	m.recorder = metrics.NewCompact()
	m.line = timeline.NewCompact(m.recorder.Bill())
	return figures{m.line, m.recorder}
}

// figures fold each event into two: the line of time asks the recorder what was drawn before an event.
type figures struct {
	line     *timeline.Timeline
	recorder *metrics.Recorder
}

// Log folds an event.
func (f figures) Log(v *sched.View, e *sched.Event) {
	f.line.Log(v, e)
	f.recorder.Log(v, e)
}

// Timeline returns who held what when, for what Look calls.
func (m *Manager) Timeline() *timeline.Timeline { return m.line }

// drive makes the driver of a start.
func (m *Manager) drive(s *host.Start) (host.Driver, error) {
	last, err := shim.State(m.o.Dir).Epoch()
	if err != nil && !errors.Is(err, shim.ErrTorn) { // then it is written again
		return nil, err
	}
	epoch, err := m.kept.NextEpoch(last)
	if err != nil {
		return nil, err
	}
	failpoint.Here("epoch")
	origin, err := time.Parse(time.RFC3339Nano, s.Header.Origin)
	if err != nil {
		return nil, fmt.Errorf("manager: origin of the log: %w", err)
	}
	name, _ := os.Hostname()
	d, err := local.New(local.Options{State: shim.State(m.o.Dir), Epoch: epoch, Origin: origin, Node: name,
		Restored: store.RestoredAsOf(m.o.Dir),
		Devices:  m.o.Devices, Known: known(s),
		Types: s.Header.Types, Jobs: arrivals(m.o.jobs()), Endless: m.o.Jobs == nil, Shim: m.o.Shim,
		Report: m.o.Report, Look: m.o.Look,
		Offer: len(s.Header.Pools) > 0, Hold: m.hold, Ports: m.o.Ports, Machine: m.o.Machine,
		Log: m.o.Log, Peak: func(id sched.JobID) float32 { return m.recorder.Of(id).PeakGB }})
	if err != nil {
		return nil, err
	}
	m.driver.Store(d)
	return d, nil
}

// known are the devices that the log of a start knows of, by GPUID.
func known(s *host.Start) []device.Device {
	list := make([]device.Device, len(s.View.GPUs))
	for i := range s.View.Nodes {
		n := &s.View.Nodes[i]
		for k, name := range n.Spec.Devices {
			if at := int(n.First) + k; at < len(list) {
				list[at] = device.Device{Name: name, MemoryGB: n.Spec.GPUMemGB}
				if t := int(n.Spec.Type); t < len(s.Header.Types) {
					list[at].Type = s.Header.Types[t]
				}
			}
		}
	}
	if slices.ContainsFunc(list, func(d device.Device) bool { return d.Name == "" }) {
		return nil // the log does not say
	}
	return list
}

// begin writes the header of a new log, or checks that of an old one, which goes on under the defaults with which it
// started where given says no other.
func (m *Manager) begin(ctx context.Context, given map[string]string) error {
	begun, err := m.kept.Begun()
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
		return m.kept.Begin(h)
	}
	h, err := m.kept.logged()
	if err == nil {
		m.o.Settings, err = system.LiveDefaultsOf(&h, m.o.System, given)
	}
	switch {
	case err != nil:
		return err
	case h.Trace != m.o.trace():
		return fmt.Errorf("manager: %s: %w job file, or an older version of this one; give the new one a folder of "+
			"its own by --state", m.o.Dir, ErrOther)
	case (h.Budget > 0) != (m.o.Budget > 0):
		return fmt.Errorf("manager: %s: %w budget: %v slots, now %v, 0 being none; give it a folder of its own",
			m.o.Dir, ErrOther, h.Budget, m.o.Budget)
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
	return h.System == o.System && system.Alike(h, o.Settings, o.Jobs != nil) && h.Budget == o.Budget
}

// change has another system go on with what the one of header h leaves.
func (m *Manager) change(h eventlog.Header) error {
	m.kept.renewed = eventlog.GivesWay(systemText(h.System, h.Settings), systemText(m.o.System, m.o.Settings))
	most := h.ShareLimit // of what may be shared already
	h.System, h.Settings, h.Budget, h.Since = m.o.System, m.o.Settings, m.o.Budget, system.GoesOnSince(&h)
	if _, err := System(&h, m.o.Knows); err != nil {
		return err
	}
	h.ShareLimit = max(h.ShareLimit, most)
	m.o.Log.Info("another system goes on", "change", m.kept.renewed)
	return m.kept.Change(h)
}

// systemText names a system with its keys.
func systemText(name string, settings map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		name += " " + key + "=" + settings[key]
	}
	return name
}

// Result returns the figures so far, and the jobs one by one.
func (m *Manager) Result() (metrics.Result, []metrics.Job) {
	return m.recorder.Result(m.Header().System), m.recorder.All()
}

// Energy returns what all nodes have used, in kWh, and what has come of a job, for what Look calls.
func (m *Manager) Energy() (kWh float64, of func(sched.JobID) metrics.Job) {
	return m.recorder.Settle(), m.recorder.Of
}

// Metered reports whether the machine was measured to draw power.
func (m *Manager) Metered() bool { return m.recorder.Metered() }

// WriteLog writes the log so far as lines of JSON.
func (m *Manager) WriteLog(w io.Writer) error {
	lines, err := m.kept.Lines()
	if err != nil {
		return err
	}
	_, err = io.Copy(w, lines)
	return errors.Join(err, lines.Close())
}

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
