package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// fakeDevices are devices that a test has in its hand.
type fakeDevices struct {
	mu    sync.Mutex
	list  []Device
	users map[string][]int
	err   error
}

var _ Devices = (*fakeDevices)(nil)

func (f *fakeDevices) List() ([]Device, error) { return f.list, nil }

func (f *fakeDevices) Users() (map[string][]int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.users, f.err
}

func (*fakeDevices) Locks() string { return "" }

func (*fakeDevices) Env([]Device) []string { return nil }

func (f *fakeDevices) set(users map[string][]int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users, f.err = users, err
}

// on returns a driver of devices that looks at them often.
func on(t *testing.T, dir string, epoch int64, devices Devices, list ...Arrival) (*Driver, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(Options{State: shim.State(dir), Epoch: epoch, Origin: time.Now(), Node: "here", Devices: devices, Jobs: list, Shim: []string{exe, "shim"}})
	if err == nil {
		d.lookEvery = 10 * time.Millisecond
		t.Cleanup(d.Close)
	}
	return d, err
}

// changes returns what was told of devices: number and state.
func (h *hand) changes() (list [][2]int32) {
	for _, e := range h.events {
		if e.Kind == sched.GPUChanged {
			list = append(list, [2]int32{int32(e.Value), e.Code})
		}
	}
	return list
}

// Ensure that devices keep their numbers over the life of a folder: one that is not there is missing, one that is new is
// not used, and one of which the software says something else than before is the same.
func TestDevicesChange(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	const missing, usable = int32(sched.GPUMissing), int32(sched.GPUInUse)
	a, b, c := Device{"A", "h", 80}, Device{"B", "h", 80}, Device{"C", "h", 80}
	v := sched.View{}
	for i, step := range []struct {
		list []Device
		want [][2]int32
	}{
		{[]Device{a, b}, nil},
		{[]Device{b}, [][2]int32{{0, missing}}},
		{[]Device{c, b, a}, [][2]int32{{0, usable}}},
		{[]Device{{"B", "h", 79.5}, {"A", "other", 80}}, nil},
		{nil, [][2]int32{{0, missing}, {1, missing}}},
	} {
		d, err := on(t, dir, int64(i+1), &fakeDevices{list: step.list})
		if err != nil {
			t.Fatal(err)
		}
		h := take(t, d, v)
		if got := h.changes(); !slices.Equal(got, step.want) {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
		if i == 0 && (h.find(sched.NodeJoined, 0) == nil || h.find(sched.NodeJoined, 0).NodeSpec.GPUs != 2) {
			t.Errorf("no node of 2 GPUs in %v", h.events)
		}
		v = sched.View{Now: d.now, Nodes: []sched.Node{{State: sched.NodeUp}}, GPUs: make([]sched.GPU, 2)}
		for j := range v.GPUs {
			v.GPUs[j].State = d.state[j]
		}
	}
}

// Ensure that a machine without devices is refused, and a list of devices that cannot be read is told.
func TestNoDevices(t *testing.T) {
	t.Parallel()
	if _, err := on(t, t.TempDir(), 1, Slots(0)); !errors.Is(err, errNoDevices) {
		t.Errorf("%v, want errNoDevices", err)
	}
	dir := t.TempDir()
	touch(t, filepath.Join(dir, "devices.json"))
	if _, err := on(t, dir, 1, Slots(1)); err == nil || !strings.Contains(err.Error(), "devices.json") {
		t.Errorf("%v, want the file named", err)
	}
}

// Ensure that a device that somebody else uses is told as foreign, and as free when they are gone; that processes of jobs
// and those that are gone are nobody else; and that what cannot be told changes nothing.
func TestForeign(t *testing.T) {
	t.Parallel()
	list, _ := jobs(t, time.Second, `echo $$; exec sleep MARK`)
	f := &fakeDevices{list: []Device{{Name: "A"}, {Name: "B"}}}
	d, err := on(t, folder(t), 1, f, list...)
	if err != nil {
		t.Fatal(err)
	}
	h := take(t, d, sched.View{})
	h.arrivals(1)
	h.apply(start(0, 1, 0))
	h.outputHas(0, 1, "\n")
	own := atoi(t, strings.TrimSpace(h.output(0, 1)))
	const foreign, usable = int32(sched.GPUForeign), int32(sched.GPUInUse)
	var want [][2]int32
	look := func(what string, more ...[2]int32) {
		t.Helper()
		want = append(want, more...)
		h.until(what, func() bool { return slices.Equal(h.changes(), want) })
	}
	f.set(map[string][]int{"A": {own, gonePID}, "B": {os.Getpid()}}, nil)
	look("somebody else on B", [2]int32{1, foreign})
	f.set(nil, errors.New("no answer"))
	h.passes(5)
	look("nothing new")
	f.set(map[string][]int{"A": {os.Getpid()}, "B": {own}}, nil)
	look("somebody else on A instead", [2]int32{0, foreign}, [2]int32{1, usable})
	f.set(nil, nil)
	look("nobody", [2]int32{0, usable})
}

// gonePID is no process: pids end below it.
const gonePID = 1 << 30

func atoi(t *testing.T, s string) (n int) {
	t.Helper()
	for _, c := range s {
		if c < '0' || c > '9' {
			t.Fatalf("%q, want a number", s)
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// passes lets the driver look n times.
func (h *hand) passes(n int) {
	h.Helper()
	for ; n > 0; n-- {
		last := h.d.looked
		h.until("a look", func() bool { return h.d.looked.After(last) })
	}
}

// Ensure that the end of an attempt is told once its devices show no process that is gone, or the patience is over.
func TestGhosts(t *testing.T) {
	t.Parallel()
	for name, stays := range map[string]bool{"go": false, "stay": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, _ := jobs(t, time.Second, `exit 0`)
			f := &fakeDevices{list: []Device{{Name: "A"}, {Name: "B"}}}
			f.set(map[string][]int{"A": {gonePID}}, nil)
			d, err := on(t, folder(t), 1, f, list...)
			if err != nil {
				t.Fatal(err)
			}
			if d.freePatience = patience; stays {
				d.freePatience = 300 * time.Millisecond
			}
			h := take(t, d, sched.View{})
			h.arrivals(1)
			h.apply(start(0, 1, 0))
			h.until("over.json", func() bool { _, err := d.o.State.RunDir(0, 1).Over(); return err == nil })
			h.passes(5)
			if h.find(sched.AttemptEnded, 0) != nil && !stays {
				t.Error("told while the device shows a process")
			}
			if !stays {
				f.set(map[string][]int{"B": {gonePID}}, nil)
			}
			h.end(0, sched.Finished)
		})
	}
}
