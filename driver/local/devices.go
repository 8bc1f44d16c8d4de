package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

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

// inventory fixes the devices at those which the folder was begun with: their numbers are in the log. One that is new
// is not used.
func (d *Driver) inventory() error {
	found, err := d.o.Devices.List(context.Background())
	if err != nil {
		return err
	}
	const name = "devices.json"
	path := filepath.Join(string(d.o.State), name)
	b, missing := os.ReadFile(path)
	switch {
	case errors.Is(missing, fs.ErrNotExist):
		d.devices = device.Grouped(found)
		if len(found) == 0 {
			return errNoDevices
		}
		if err := d.o.State.Save(name, d.devices); err != nil {
			return err
		}
		failpoint.Here("devices.made")
	case missing != nil:
		return missing
	default:
		if err := json.Unmarshal(b, &d.devices); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	d.watch = device.NewWatch(d.rule, d.devices)
	d.state = make([]sched.GPUState, len(d.devices))
	d.withheld, d.heldIdle = make([]bool, len(d.devices)), make([]bool, len(d.devices))
	for i := range d.devices {
		if !has(found, d.devices[i].Name) {
			d.watch.Set(i, device.Verdict{State: sched.GPUMissing, Why: "it is not there"})
		}
	}
	for i := range found {
		if !has(d.devices, found[i].Name) {
			d.o.Log.Warn("device is new and not used: once the jobs of this state folder are done, begin another by "+
				"--state to use it", "device", found[i].Name)
		}
	}
	return nil
}

// has reports whether a device is on the list. What else is said of it may change with its software.
func has(list []device.Device, name string) bool {
	return slices.ContainsFunc(list, func(d device.Device) bool { return d.Name == name })
}

// nodes returns the devices as nodes, one for each type: the GPUs of a node are alike.
func (d *Driver) nodes() (events []sched.Event, err error) {
	known, types := d.o.Types, device.Types(d.devices)
	if known == nil {
		known = types
	}
	for first := 0; first < len(d.devices); {
		kind := d.devices[first].Type
		spec := &sched.NodeSpec{Name: d.o.Node, Pool: sched.None, Type: sched.TypeID(slices.Index(known, kind)),
			GPUMemGB: d.devices[first].MemoryGB}
		if !slices.Contains(known, kind) || spec.Type >= sched.MaxGPUTypes {
			return nil, fmt.Errorf("local: device %s of type %q, want one of the %d types of the log",
				d.devices[first].Name, kind, len(known))
		}
		if len(types) > 1 {
			spec.Name += "/" + kind
		}
		for ; first < len(d.devices) && d.devices[first].Type == kind; first++ {
			spec.GPUs++
			spec.Devices = append(spec.Devices, d.devices[first].Name)
			spec.GPUMemGB = min(spec.GPUMemGB, d.devices[first].MemoryGB)
		}
		events = append(events, sched.Event{Kind: sched.NodeJoined, NodeSpec: spec})
	}
	return events, nil
}

// sight is what a look at the devices showed.
type sight struct {
	sample *device.Sample
	held   map[string]bool // of the devices whose lock somebody else had: whether they have it still
	err    error
}

// ask looks at the devices, and at the locks of barred.
func (d *Driver) ask(barred []string) sight {
	s := sight{held: make(map[string]bool)}
	for _, name := range barred {
		lock, err := shim.Lock(filepath.Join(d.o.State.Locks(d.o.Devices.Locks()), name), false)
		if s.held[name] = err != nil; err == nil {
			_ = lock.Close()
		}
	}
	s.sample, s.err = d.eye.Sample(context.Background())
	return s
}

// pause returns how long after a look the next one is due.
func (d *Driver) pause() time.Duration {
	if d.watch.Pending() {
		return min(d.lookSoon, d.lookEvery)
	}
	return d.lookEvery
}

// look has it found out, now and then, how the devices are. That may take long: nobody waits for it.
func (d *Driver) look() {
	if d.looking || time.Since(d.looked) < d.pause() {
		return
	}
	d.looking = true
	barred := slices.Clone(d.barred)
	d.work.Go(func() {
		select {
		case d.seen <- d.ask(barred):
		case <-d.quit:
		}
	})
}

// judge returns what a look tells: which devices may be used, and what they do.
func (d *Driver) judge(s sight) []sched.Event {
	d.looked, d.looking = time.Now(), false
	if s.err != nil {
		d.o.Log.Warn("cannot tell how the devices are", "error", s.err)
		return nil
	}
	d.barred = slices.DeleteFunc(d.barred, func(name string) bool {
		held, looked := s.held[name]
		return looked && !held
	})
	o := d.owners(nil)
	d.watch.See(s.sample, device.Owners{Ours: o.owns, Gone: gone, Held: o.holds})
	return append(d.changes(), d.gauge.read(d, s.sample, o)...)
}

// changes tells the devices whose state is another than was last told, and remembers how all are for those who ask.
// Users are warned of those that are given to no job, and of memory that is held idle, be it by a job of ours.
func (d *Driver) changes() (events []sched.Event) {
	list := make([]device.Status, len(d.devices))
	for i := range list {
		s := d.watch.Of(i)
		switch {
		case d.withheld[i]:
			s.Verdict = device.Verdict{State: sched.GPUWithheld, Why: "its user wants it left alone"}
		case slices.Contains(d.barred, s.Name):
			s.Verdict = device.Verdict{State: sched.GPUForeign, Why: "somebody else has its lock"}
		}
		if s.State != d.state[i] {
			d.state[i] = s.State
			events = append(events, sched.Event{Kind: sched.GPUChanged, Value: float64(i), Code: int32(s.State),
				Text: s.Why})
			if s.Why != "" {
				d.o.Log.Warn("a device is given to no job", "device", s.Name, "why", s.Why)
			}
		}
		if idle := s.HeldIdle(&d.rule); idle != d.heldIdle[i] {
			if d.heldIdle[i] = idle; idle {
				d.o.Log.Warn("memory of a device is held and nothing done with it", "device", s.Name, "since",
					s.IdleSince, "by", s.By())
			}
		}
		list[i] = s
	}
	d.mu.Lock()
	d.status = list
	d.mu.Unlock()
	return events
}

// Status returns how the devices were when last looked at, in the order of their GPUIDs. It may be called by anybody at
// any time.
func (d *Driver) Status() []device.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.status
}

// release returns once the devices of an attempt that has ended are free, or the patience is over. Then it returns
// those that are not, and why.
func (d *Driver) release(a *attempt, names []string) map[string]device.Verdict {
	began := time.Now()
	check := device.NewCheck(d.rule, names, began)
	ctx, cancel := context.WithDeadline(context.Background(), began.Add(d.rule.Patience))
	defer cancel()
	for !isClosed(d.quit) {
		s, err := d.eye.Sample(ctx)
		o := d.owners(a)
		if check.See(s, err, time.Now(), device.Owners{Ours: o.owns, Gone: gone, Held: o.holds}) {
			break
		}
		select {
		case <-time.After(checkEvery):
		case <-ctx.Done():
		case <-d.quit:
		}
	}
	return check.Found()
}

// numbers returns the GPUs of the named devices.
func (d *Driver) numbers(names []string) (list []sched.GPUID) {
	for i := range d.devices {
		if slices.Contains(names, d.devices[i].Name) {
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
		if g < 0 || int(g) >= len(d.devices) {
			return nil, fmt.Errorf("local: GPU %d, want one of %d", g, len(d.devices))
		}
	}
	for _, g := range gpus {
		d.withheld[g] = on
	}
	return d.changes(), nil
}
