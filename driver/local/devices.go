package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainyard/trainyard/driver/local/beneath"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/internal/failpoint"
	"github.com/trainyard/trainyard/sched"
)

// Times of looking at the devices.
const (
	lookEvery    = 15 * time.Second       // how often the driver looks
	lookSoon     = time.Second            // the same while a change may be coming, which must last before it counts
	lookPatience = 25 * time.Second       // how long a look may take
	checkEvery   = 250 * time.Millisecond // how often while devices are not free after a job
)

// deviceWatch knows the devices of the machine: which there are, whether each may be given to jobs, and what users want
// of them. Its methods belong to the engine's goroutine, but for those that say otherwise.
type deviceWatch struct {
	o       *Options // the driver's
	folder  shim.State
	backend device.Backend
	log     *slog.Logger
	work    *sync.WaitGroup // the driver's, which ends a look as well
	quit    chan struct{}

	list     []device.Device                // by GPUID
	state    []sched.GPUState               // by device, as last reported
	withheld []bool                         // by device: its user wants it left alone
	retired  []bool                         // by device: it is missing, and its user does not expect it back
	refused  map[string]bool                // new devices that are not used: users were warned of them
	held     string                         // why all are given to no job; "" = they may be
	heldIdle []bool                         // by device: users were warned of it
	barred   []string                       // devices whose lock another process had at the last look
	holders  map[string]string              // of those: who, in words, where that is known
	astray   map[string][]device.Trespasser // by device, at the last look
	eye      *device.Sampler
	watch    *device.Watch
	looked   time.Time   // when the devices were last looked at
	looking  bool        // that is under way
	seen     chan glance // what it showed

	rule device.Rule // the default, but for tests
	rhythm

	mu     sync.Mutex
	status []device.Status // see Driver.Status
}

// rhythm is how often the driver looks: the constants, but for tests.
type rhythm struct{ lookEvery, lookSoon time.Duration }

// watchDevices returns the devices of a folder.
func watchDevices(o *Options, work *sync.WaitGroup, quit chan struct{}) (*deviceWatch, error) {
	w := &deviceWatch{o: o, folder: o.State, backend: o.Devices, log: o.Log, work: work, quit: quit,
		refused: make(map[string]bool), rule: device.DefaultRule,
		rhythm: rhythm{cmp.Or(o.Look, lookEvery), lookSoon}, seen: make(chan glance),
		eye: device.NewSampler(o.Devices, lookPatience)}
	if err := w.inventory(o.Known); err != nil {
		return nil, fmt.Errorf("local: devices: %w", err)
	}
	return w, nil
}

// inventory takes the devices of the folder's list, whose numbers are in the log, and adds those that are new. Known
// are those of the log, in case that the list cannot be read: it is quarantined then.
func (w *deviceWatch) inventory(known []device.Device) error {
	found, err := w.backend.List(context.Background())
	if err != nil {
		return err
	}
	const name = inventoryName
	b, missing := beneath.Read(string(w.folder), name, maxInventory)
	unreadable := errors.Is(missing, beneath.ErrRefused)
	if missing == nil {
		if missing = json.Unmarshal(b, &w.list); missing == nil && len(w.list) == 0 {
			missing = errNoDevices
		}
		unreadable = missing != nil
	}
	switch {
	case unreadable:
		if err := w.relist(name, known, found, missing); err != nil {
			return err
		}
	case errors.Is(missing, fs.ErrNotExist):
		if len(found) == 0 {
			return errNoDevices
		}
		w.list = firstList(known, found)
		if err := w.folder.Save(name, w.list); err != nil {
			return err
		}
		failpoint.Here("devices.made")
	case missing != nil:
		return missing
	}
	w.watch = device.NewWatch(w.rule, w.list)
	w.state = make([]sched.GPUState, len(w.list))
	w.withheld, w.heldIdle = make([]bool, len(w.list)), make([]bool, len(w.list))
	w.retired = make([]bool, len(w.list))
	for i := range w.list {
		if !has(found, w.list[i].Name) {
			w.watch.Set(i, device.Verdict{State: sched.GPUMissing, Why: "it is not there"})
		}
	}
	return w.admit(found)
}

// firstList returns the devices of a folder that has no list of them. Their numbers are those of the log, if one was
// restored or the list was removed: those that are not there are missing. On a machine that has as many devices, none
// of which the log knows, they take the numbers of those.
func firstList(known, found []device.Device) []device.Device {
	same := func(d device.Device) bool { return has(found, d.Name) }
	if len(found) < len(known) || slices.ContainsFunc(known, same) {
		return detailed(known, found)
	}
	return device.Grouped(found)
}

// relist sets a list that cannot be read aside, and makes it again of the devices that the log knows.
func (w *deviceWatch) relist(name string, known, found []device.Device, why error) error {
	if len(known) == 0 {
		return fmt.Errorf("%s in %s cannot be read (%w), and the log knows of none: remove it, and it is made again",
			name, w.folder, why)
	}
	w.log.Warn("the list of devices was quarantined, and made again by the log", "file", name+shim.Unreadable,
		"why", why)
	w.list = detailed(known, found)
	return errors.Join(w.folder.Quarantine(name), w.folder.Save(name, w.list))
}

// The list of devices of a folder: its name there, and the most bytes it may have.
const (
	inventoryName = "devices.json"
	maxInventory  = 16 << 20
)

// detailed returns devices as they are found, or as they are where they are not.
func detailed(list, found []device.Device) []device.Device {
	list = slices.Clone(list)
	for i := range list {
		if n := slices.IndexFunc(found, func(d device.Device) bool { return d.Name == list[i].Name }); n >= 0 {
			list[i] = found[n]
		}
	}
	return list
}

// has reports whether a device is on the list. What else is said of it may change with its software.
func has(list []device.Device, name string) bool {
	return slices.ContainsFunc(list, func(d device.Device) bool { return d.Name == name })
}

// glance is what a look at the devices showed.
type glance struct {
	sample *device.Sample
	found  []device.Device // the devices there are, where the sample has some that are not known
	held   map[string]bool // of the devices whose lock someone else had: whether they have it still
	// holders says of those who has it, in words
	holders map[string]string
	err     error
}

// lockOf returns the lock of a device.
func (w *deviceWatch) lockOf(name string) *shim.DeviceLock {
	l := w.folder.DeviceLock(name, w.backend.Locks())
	for i := range w.list {
		if d := &w.list[i]; d.Name == name {
			l.Node, l.Part = w.backend.Node(d), d.Slice != ""
		}
	}
	return l
}

// ask looks at the devices, and at the locks of barred. Where there are others than known, it asks what they are.
func (w *deviceWatch) ask(barred, known []string) glance {
	s := glance{held: make(map[string]bool), holders: make(map[string]string)}
	for _, name := range barred {
		locks, err := w.lockOf(name).Take(false)
		if s.held[name] = err != nil; err != nil {
			s.holders[name] = err.Error()
		}
		for _, l := range locks {
			_ = l.Close()
		}
	}
	if s.sample, s.err = w.eye.Sample(context.Background()); s.sample == nil || s.err != nil {
		return s
	}
	for name := range s.sample.Readings {
		if !slices.Contains(known, name) {
			s.found = w.listed()
			break
		}
	}
	return s
}

// listed returns the devices there are, nil where that cannot be reported: the next look asks again.
func (w *deviceWatch) listed() []device.Device {
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	list, _ := w.backend.List(ctx)
	return list
}

// names returns those of the devices, and of those that are not used.
func (w *deviceWatch) names() (list []string) {
	for i := range w.list {
		list = append(list, w.list[i].Name)
	}
	return slices.AppendSeq(list, maps.Keys(w.refused))
}

// pause returns how long after a look the next one is due.
func (w *deviceWatch) pause() time.Duration {
	if w.watch.Pending() {
		return min(w.lookSoon, w.lookEvery)
	}
	return w.lookEvery
}

// look has it found out, now and then, how the devices are. That may take long: no one waits for it.
func (w *deviceWatch) look() {
	if w.looking || time.Since(w.looked) < w.pause() {
		return
	}
	w.looking = true
	barred, known := slices.Clone(w.barred), w.names()
	w.work.Go(func() {
		select {
		case w.seen <- w.ask(barred, known):
		case <-w.quit:
		}
	})
}

// judge returns what a look shows: which devices may be used, and what they do.
func (d *Driver) judge(s glance) []sched.Event {
	d.dev.looked, d.dev.looking = time.Now(), false
	if s.err != nil {
		d.o.Log.Warn("cannot say how the devices are", "error", s.err)
		return nil
	}
	d.dev.barred = slices.DeleteFunc(d.dev.barred, func(name string) bool {
		held, looked := s.held[name]
		return looked && !held
	})
	d.dev.holders = s.holders
	events := d.dev.newcomers(s.found)
	o := d.owners(nil)
	d.dev.astray = o.trespassers(s.sample)
	d.dev.watch.See(s.sample, device.Owners{Ours: o.owns, Gone: gone, Held: o.holds})
	events = append(events, d.dev.changes()...)
	return append(events, d.gauge.read(d.view, d.dev.list, s.sample, o)...)
}

// changes reports the devices whose state is another than was last reported, and remembers how all are for those who
// ask. Users are warned of those that are given to no job, and of memory that is held idle, be it by a job of ours.
func (w *deviceWatch) changes() (events []sched.Event) {
	list := make([]device.Status, len(w.list))
	for i := range list {
		s := w.watch.Of(i)
		if w.retired[i] && s.State != sched.GPUMissing {
			w.retired[i] = false
			w.log.Warn("a device that was forgotten is back, and used again", "device", s.Name)
		}
		switch {
		case w.retired[i]:
			s.Verdict = device.Verdict{State: sched.GPUForgotten}
		case w.withheld[i]:
			s.Verdict = device.Verdict{State: sched.GPUWithheld, Why: "its user wants it left alone"}
		case w.held != "":
			s.Verdict = device.Verdict{State: sched.GPUStuck, Why: w.held}
		case slices.Contains(w.barred, s.Name):
			s.Verdict = device.Verdict{State: sched.GPUForeign, Why: w.lockText(s.Name)}
		}
		s.Trespassers = w.astray[s.Name]
		if s.State != w.state[i] {
			w.state[i] = s.State
			events = append(events, sched.Event{Kind: sched.GPUChanged, Value: float64(i), Code: int32(s.State),
				Text: s.Why})
			if s.Why != "" && w.held == "" {
				w.log.Warn("a device is given to no job", "device", s.Name, "why", s.Why)
			}
		}
		if idle := s.HeldIdle(&w.rule); idle != w.heldIdle[i] {
			if w.heldIdle[i] = idle; idle {
				w.log.Warn("memory of a device is held and nothing done with it", "device", s.Name, "since",
					s.IdleSince, "by", s.By())
			}
		}
		list[i] = s
	}
	w.mu.Lock()
	w.status = list
	w.mu.Unlock()
	return events
}

// lockText says who has the lock of a device.
func (w *deviceWatch) lockText(name string) string {
	return "another manager has its lock" + holderText(w.holders[name])
}

// holderText is the holder in the error of a lock that someone has, with a colon before it; "" = it names none.
func holderText(text string) string {
	_, by, found := strings.Cut(text, " is in use by ")
	if !found {
		return ""
	}
	return ": " + strings.TrimSuffix(by, ": "+shim.ErrHeld.Error())
}

// Status returns how the devices were when last looked at, in the order of their GPUIDs. It may be called by anybody at
// any time.
func (d *Driver) Status() []device.Status {
	d.dev.mu.Lock()
	defer d.dev.mu.Unlock()
	return d.dev.status
}

// release returns once the devices of an attempt that has ended are free, or the patience is over. Then it returns
// those that are not, and why, and what others had there at first.
func (d *Driver) release(a *attempt, names []string) (unfree map[string]device.Verdict, others neighbours) {
	began := time.Now()
	check := device.NewCheck(d.dev.rule, names, began)
	ctx, cancel := context.WithDeadline(context.Background(), began.Add(d.dev.rule.Patience))
	defer cancel()
	for !isClosed(d.quit) {
		s, err := d.dev.eye.Sample(ctx)
		o := d.owners(a)
		if others == nil && err == nil && s != nil {
			others = o.on(s, names)
		}
		if check.See(s, err, time.Now(), device.Owners{Ours: o.owns, Gone: gone, Held: o.holds}) {
			break
		}
		select {
		case <-time.After(checkEvery):
		case <-ctx.Done():
		case <-d.quit:
		}
	}
	return check.Found(), others
}

// numbers returns the GPUs of the named devices.
func (w *deviceWatch) numbers(names []string) (list []sched.GPUID) {
	for i := range w.list {
		if slices.Contains(names, w.list[i].Name) {
			list = append(list, sched.GPUID(i))
		}
	}
	return list
}

// Withhold leaves GPUs alone because their user wants that, or uses them again: then each is what it is seen to be. It
// returns the events that say so, dated by the caller, and an error if one is not there: then none is withheld. It
// belongs to the engine's goroutine, between two answers. What was withheld outlives the driver, as the View of the
// next one has it.
func (d *Driver) Withhold(gpus []sched.GPUID, on bool) ([]sched.Event, error) {
	for _, g := range gpus {
		if g < 0 || int(g) >= len(d.dev.list) {
			return nil, fmt.Errorf("local: GPU %d, want one of %d", g, len(d.dev.list))
		}
	}
	for _, g := range gpus {
		d.dev.withheld[g] = on
	}
	return d.dev.changes(), nil
}
