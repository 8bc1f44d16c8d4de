package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/internal/failpoint"
	"github.com/trainyard/trainyard/sched"
)

// Device is what a job holds: a GPU or a CPU slot.
type Device struct {
	Name     string  `json:"name"` // what jobs are given; of GPUs the UUID
	Type     string  `json:"type"`
	MemoryGB float32 `json:"memory_gb"` // 0 = unknown
}

// Devices tells what the machine has.
type Devices interface {
	// List returns the devices, always in the same order.
	List() ([]Device, error)
	// Users returns the processes that use each device, by its name; nothing where that cannot be told.
	Users() (map[string][]int, error)
	// Locks returns the folder of the locks of the devices, the same for all who share the machine; "" = of our own.
	Locks() string
	// Env returns the variables by which a job's processes find the devices they hold.
	Env(held []Device) []string
}

// Slots are CPU slots: places for jobs on a machine without GPUs, as many as one likes.
type Slots int

var _ Devices = Slots(0)

// List returns slot-0, slot-1, ...
func (s Slots) List() ([]Device, error) {
	list := make([]Device, max(s, 0))
	for i := range list {
		list[i] = Device{Name: fmt.Sprintf("slot-%d", i), Type: "cpu"}
	}
	return list, nil
}

// Users returns nothing: whoever else computes on this machine does not take a slot.
func (Slots) Users() (map[string][]int, error) { return nil, nil }

// Locks returns none: slots are made up by each manager.
func (Slots) Locks() string { return "" }

// Env hides the GPUs of the machine, if it has any.
func (Slots) Env([]Device) []string { return []string{"CUDA_VISIBLE_DEVICES="} }

// Times of looking at the devices.
const (
	lookEvery    = 15 * time.Second // how often the driver looks who uses them
	freePatience = 30 * time.Second // how long one may show processes that are gone before it is given on all the same
)

// inventory fixes the devices at those which the folder was begun with: their numbers are in the log. One that is new is
// not used.
func (d *Driver) inventory() error {
	found, err := d.o.Devices.List()
	if err != nil {
		return err
	}
	const name = "devices.json"
	path := filepath.Join(string(d.o.State), name)
	b, missing := os.ReadFile(path)
	switch {
	case errors.Is(missing, fs.ErrNotExist):
		d.devices = found
		if len(found) == 0 {
			return errNoDevices
		}
		if err := d.o.State.Save(name, found); err != nil {
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
	d.state = make([]sched.GPUState, len(d.devices))
	for i := range d.devices {
		if !has(found, d.devices[i].Name) {
			d.state[i] = sched.GPUMissing
			d.o.Log.Warn("device is missing", "device", d.devices[i].Name)
		}
	}
	for i := range found {
		if !has(d.devices, found[i].Name) {
			d.o.Log.Warn("device is new and not used: begin a new state folder to use it", "device", found[i].Name)
		}
	}
	return nil
}

// has reports whether a device is on the list. What else is said of it may change with its software.
func has(list []Device, name string) bool {
	return slices.ContainsFunc(list, func(d Device) bool { return d.Name == name })
}

// sight is what a look at the devices showed.
type sight struct {
	users map[string][]int
	held  map[string]bool // of the devices whose lock somebody else had: whether they have it still
	err   error
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
	s.users, s.err = d.o.Devices.Users()
	return s
}

// bar takes the devices that a failed start blames out of use: somebody else has their locks.
func (d *Driver) bar(e *sched.Event) {
	for _, g := range e.GPUs {
		name := d.devices[g].Name
		if !slices.Contains(d.barred, name) {
			d.barred = append(d.barred, name)
		}
		if d.state[g] != sched.GPUForeign {
			d.state[g] = sched.GPUForeign
			d.later = append(d.later, d.changed(int(g)))
		}
	}
}

// look has it found out, now and then, who uses the devices. That may take long: nobody waits for it.
func (d *Driver) look() {
	if d.looking || time.Since(d.looked) < d.lookEvery {
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

// judge returns what has changed on the devices: those that somebody else uses are none of ours.
func (d *Driver) judge(s sight) (events []sched.Event) {
	d.looked, d.looking = time.Now(), false
	if s.err != nil {
		d.o.Log.Warn("cannot tell who uses the devices", "error", s.err)
		return nil
	}
	d.barred = slices.DeleteFunc(d.barred, func(name string) bool { held, looked := s.held[name]; return looked && !held })
	users := s.users
	if len(users) == 0 && !slices.Contains(d.state, sched.GPUForeign) {
		return nil
	}
	ours := d.members()
	for i := range d.devices {
		if d.state[i] == sched.GPUMissing {
			continue
		}
		now := sched.GPUInUse
		if slices.Contains(d.barred, d.devices[i].Name) || slices.ContainsFunc(users[d.devices[i].Name], func(pid int) bool { return !ours[pid] && exists(pid) }) {
			now = sched.GPUForeign
		}
		if now != d.state[i] {
			d.state[i] = now
			events = append(events, d.changed(i))
		}
	}
	return events
}

// members returns the processes of all attempts.
func (d *Driver) members() map[int]bool {
	ours := make(map[int]bool)
	for _, a := range d.attempts {
		o, err := a.dir.Order()
		if err != nil {
			continue
		}
		pids, err := procs.Open(o.Cgroup, o.GroupName(), o.Cookie()).Members()
		if err != nil {
			d.o.Log.Warn("cannot list the processes of an attempt", "job", a.job, "error", err)
		}
		for _, pid := range pids {
			ours[pid] = true
		}
	}
	return ours
}

// release returns once no process that is gone is shown as a user of the devices any more, or the patience is over.
func (d *Driver) release(names []string) {
	for deadline := time.Now().Add(d.freePatience); time.Now().Before(deadline) && !isClosed(d.quit); time.Sleep(100 * time.Millisecond) {
		users, err := d.o.Devices.Users()
		if err != nil || !slices.ContainsFunc(names, func(name string) bool {
			return slices.ContainsFunc(users[name], func(pid int) bool { return !exists(pid) })
		}) {
			return
		}
	}
	if !isClosed(d.quit) {
		d.o.Log.Warn("devices show processes that are gone, and are given on all the same", "devices", names)
	}
}

// exists reports whether a process is there.
func exists(pid int) bool {
	_, err := procs.StartTime(pid)
	return err == nil
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
