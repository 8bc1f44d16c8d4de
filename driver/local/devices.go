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

// Env hides the GPUs of the machine, if it has any.
func (Slots) Env([]Device) []string { return []string{"CUDA_VISIBLE_DEVICES="} }

// lookEvery is how often the driver looks who uses the devices.
const lookEvery = 15 * time.Second

// freePatience is how long a device may show processes that are gone before it is put aside.
const freePatience = 30 * time.Second

// inventory fixes the devices at those which the folder was begun with: their numbers are in the log. One that is new is
// not used.
func (d *Driver) inventory() error {
	found, err := d.o.Devices.List()
	if err != nil {
		return err
	}
	path := filepath.Join(string(d.o.State), "devices.json")
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.devices = found
		b, err := json.Marshal(found)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return errNoDevices
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(b, &d.devices); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	d.state = make([]sched.GPUState, len(d.devices))
	for i := range d.devices {
		if !slices.Contains(found, d.devices[i]) {
			d.state[i] = sched.GPUMissing
			d.o.Log.Warn("device is missing", "device", d.devices[i].Name)
		}
	}
	for i := range found {
		if !slices.Contains(d.devices, found[i]) {
			d.o.Log.Warn("device is new and not used: begin a new state folder to use it", "device", found[i].Name)
		}
	}
	return nil
}

// look finds out, now and then, whether somebody else uses a device, and returns what has changed.
func (d *Driver) look() (events []sched.Event) {
	if time.Since(d.looked) < lookEvery {
		return nil
	}
	d.looked = time.Now()
	users, err := d.o.Devices.Users()
	if err != nil {
		d.o.Log.Warn("cannot tell who uses the devices", "error", err)
		return nil
	}
	if len(users) == 0 && !slices.Contains(d.state, sched.GPUForeign) {
		return nil
	}
	ours := d.members()
	for i := range d.devices {
		if d.state[i] == sched.GPUMissing {
			continue
		}
		now := sched.GPUInUse
		if slices.ContainsFunc(users[d.devices[i].Name], func(pid int) bool { return !ours[pid] && exists(pid) }) {
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
	for deadline := time.Now().Add(freePatience); time.Now().Before(deadline) && !isClosed(d.quit); time.Sleep(100 * time.Millisecond) {
		users, err := d.o.Devices.Users()
		if err != nil || !slices.ContainsFunc(names, func(name string) bool {
			return slices.ContainsFunc(users[name], func(pid int) bool { return !exists(pid) })
		}) {
			return
		}
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
