package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// on returns a driver of devices that looks at them often.
func on(t *testing.T, dir string, epoch int64, devices device.Backend, list ...Arrival) (*Driver, error) {
	t.Helper()
	d, err := New(Options{State: stateOf(dir), Epoch: epoch, Origin: time.Now(), Node: "here", Devices: devices,
		Jobs: list, Shim: shimOf(t)})
	if err == nil {
		d.hurry()
		t.Cleanup(d.Close)
	}
	return d, err
}

func stateOf(dir string) shim.State { return shim.State(dir) }

// shimOf returns the command of a shim.
func shimOf(t *testing.T) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{exe, "shim"}
}

// changes returns what was reported of devices: number and state.
func (h *hand) changes() (list [][2]int32) {
	for _, e := range h.events {
		if e.Kind == sched.GPUChanged {
			list = append(list, [2]int32{int32(e.Value), e.Code})
		}
	}
	return list
}

// gpu returns a device.
func gpu(name, kind string, gb float32) device.Device {
	return device.Device{Name: name, Type: kind, MemoryGB: gb}
}

// pair returns two fake GPUs.
func pair() *device.Fake { return device.NewFake(gpu("A", "h", 80), gpu("B", "h", 80)) }

// by is the reading of a device with processes, of a GiB each.
func by(pids ...int) device.Reading {
	r := device.Reading{Joules: device.Unknown, Listed: true}
	for _, pid := range pids {
		r.UsedMiB += 1024
		r.Processes = append(r.Processes, device.Process{PID: pid, MiB: 1024})
	}
	return r
}

// Ensure that devices keep their numbers over the life of a folder: one that is not there is missing, one that is new
// has the next number, one of a type that the log does not know is not used, and one of which the software says
// something else than before is the same.
func TestDevicesChange(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	const missing, usable = int32(sched.GPUMissing), int32(sched.GPUInUse)
	a, b, c := gpu("A", "h", 80), gpu("B", "h", 80), gpu("C", "h", 80)
	state := engine.NewState(eventlog.Header{})
	for i, step := range []struct {
		list []device.Device
		want [][2]int32
		join []string
	}{
		{[]device.Device{a, b}, nil, []string{"A", "B"}},
		{[]device.Device{b}, [][2]int32{{0, missing}}, nil},
		{[]device.Device{c, b, a}, [][2]int32{{0, usable}}, []string{"C"}},
		{[]device.Device{gpu("B", "h", 79.5), gpu("A", "other", 80)}, [][2]int32{{2, missing}}, nil},
		{nil, [][2]int32{{0, missing}, {1, missing}}, nil},
		{[]device.Device{gpu("D", "other", 80), a}, [][2]int32{{0, usable}}, nil},
	} {
		d, err := on(t, dir, int64(i+1), device.NewFake(step.list...))
		if err != nil {
			t.Fatal(err)
		}
		h := take(t, d, *state.View())
		if got := h.changes(); !slices.Equal(got, step.want) {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
		var joined []string
		for k := range h.events {
			if h.events[k].NodeSpec != nil {
				joined = append(joined, h.events[k].NodeSpec.Devices...)
			}
			state.Apply(&h.events[k])
		}
		if !slices.Equal(joined, step.join) {
			t.Errorf("step %d: %v join, want %v", i, joined, step.join)
		}
	}
	if v := state.View(); len(v.GPUs) != 3 || v.Nodes[1].Spec.Name != "here+2" {
		t.Errorf("%d GPUs, nodes %+v", len(v.GPUs), v.Nodes)
	}
}

// Ensure that a folder whose log was restored, or whose list of devices was removed, keeps the numbers of the log, also
// where the machine has fewer devices or has them in another order: those that are not there are missing.
func TestDevicesOfALogWithoutList(t *testing.T) {
	t.Parallel()
	const missing = int32(sched.GPUMissing)
	a, b, c := gpu("A", "h", 80), gpu("B", "h", 80), gpu("C", "h", 80)
	for _, test := range []struct {
		name  string
		found []device.Device
		list  []string
		want  [][2]int32
	}{
		{"fewer", []device.Device{a}, []string{"A", "B"}, [][2]int32{{1, missing}}},
		{"fewer, and another", []device.Device{c}, []string{"A", "B", "C"}, [][2]int32{{0, missing}, {1, missing}}},
		{"another order, and one more", []device.Device{c, b, a}, []string{"A", "B", "C"}, nil},
		{"none that is known", []device.Device{c, gpu("D", "h", 80)}, []string{"C", "D"}, nil},
	} {
		state := engine.NewState(eventlog.Header{})
		first, err := on(t, folder(t), 1, pair())
		if err != nil {
			t.Fatal(err)
		}
		h := take(t, first, *state.View())
		for i := range h.events {
			state.Apply(&h.events[i])
		}
		restored := folder(t)
		d, err := New(Options{State: stateOf(restored), Epoch: 2, Origin: time.Now(), Node: "here",
			Devices: device.NewFake(test.found...), Shim: shimOf(t), Known: []device.Device{a, b}})
		if err != nil {
			t.Fatal(test.name, err)
		}
		t.Cleanup(d.Close)
		h = take(t, d, *state.View())
		if got := h.changes(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
		var names []string
		for i := range d.dev.list {
			names = append(names, d.dev.list[i].Name)
		}
		if !slices.Equal(names, test.list) {
			t.Errorf("%s: devices %v, want %v", test.name, names, test.list)
		}
	}
}

// Ensure that a machine without devices is refused, and a list of devices that cannot be read is reported.
func TestNoDevices(t *testing.T) {
	t.Parallel()
	if _, err := on(t, t.TempDir(), 1, device.Slots(0)); !errors.Is(err, errNoDevices) {
		t.Errorf("%v, want errNoDevices", err)
	}
	dir := t.TempDir()
	touch(t, filepath.Join(dir, "devices.json"))
	if _, err := on(t, dir, 1, device.Slots(1)); err == nil || !strings.Contains(err.Error(), "devices.json") {
		t.Errorf("%v, want the file named", err)
	}
}

// Ensure that a device that someone else uses is reported as foreign, and as free when they are gone; that processes of
// jobs are not those of someone else; and that what cannot be known changes nothing.
func TestForeign(t *testing.T) {
	t.Parallel()
	list, _ := jobs(t, time.Second, `echo $$; exec sleep MARK`)
	f := pair()
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
	f.Set("A", by(own))
	f.Set("B", by(os.Getpid()))
	look("someone else on B", [2]int32{1, foreign})
	if s := d.Status()[1]; s.Why != fmt.Sprintf("in use by process %d (1.0 GiB)", os.Getpid()) {
		t.Errorf("why: %q", s.Why)
	}
	f.Fail(errors.New("no answer"))
	h.passes(5)
	look("nothing new")
	f.Set("A", by(own, os.Getpid()))
	f.Set("B", by())
	f.Fail(nil)
	h.until("someone else on A instead", func() bool { return len(h.changes()) == 3 })
	want = append(want, [2]int32{0, foreign}, [2]int32{1, usable})
	look("that")
	f.Set("A", by())
	look("unknown", [2]int32{0, usable})
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
		last := h.d.dev.looked
		h.until("a look", func() bool { return h.d.dev.looked.After(last) })
	}
}

// Ensure that the end of an attempt is reported once its devices are seen free, or with the device as stuck once the
// patience is over, and that such a device is used again when it is seen free after all.
func TestNotFree(t *testing.T) {
	t.Parallel()
	ghost := by(gonePID)
	leak := device.Reading{UsedMiB: 70 << 10, Joules: device.Unknown, Listed: true}
	for _, c := range []struct {
		name  string
		r     device.Reading
		stays bool
		why   string
	}{
		{"ghost goes", ghost, false, ""},
		{"ghost stays", ghost, true, "shows process 1073741824 (1.0 GiB), which is gone, 300ms after"},
		{"memory comes back", leak, false, ""},
		{"memory stays", leak, true, "70.0 GiB of its memory are in use by no process, 300ms after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			list, _ := jobs(t, time.Second, `exit 0`)
			f := pair()
			d, err := on(t, folder(t), 1, f, list...)
			if err != nil {
				t.Fatal(err)
			}
			if d.dev.rule.Patience = patience; c.stays {
				d.dev.rule.Patience = 300 * time.Millisecond
			}
			h := take(t, d, sched.View{})
			h.arrivals(1)
			d.dev.lookEvery = time.Hour // the check alone
			f.Set("A", c.r)
			h.apply(start(0, 1, 0))
			h.until("over.json", func() bool { _, err := d.o.State.RunDir(0, 1).Over(); return err == nil })
			for range 5 {
				h.pass()
			}
			if h.find(sched.AttemptEnded, 0) != nil && !c.stays {
				t.Error("reported while the device is not free")
			}
			if !c.stays {
				f.Set("A", by())
			}
			h.end(0, sched.Finished)
			if d.dev.lookEvery = 10 * time.Millisecond; !c.stays {
				h.passes(3)
				if len(h.changes()) > 0 {
					t.Errorf("changes %v, want none", h.changes())
				}
				return
			}
			last := h.events[len(h.events)-1]
			if last.Kind != sched.GPUChanged || last.Value != 0 || last.Code != int32(sched.GPUStuck) ||
				!strings.Contains(last.Text, c.why) {
				t.Errorf("last %v, want GPU 0 stuck, %q", last, c.why)
			}
			f.Set("A", by())
			h.until("use again", func() bool {
				return slices.Equal(h.changes(), [][2]int32{{0, int32(sched.GPUStuck)}, {0, int32(sched.GPUInUse)}})
			})
		})
	}
}

// pass lets some time go by.
func (h *hand) pass() {
	h.Helper()
	events, err := h.d.Next(h.Context(), h.d.Now().Add(20*time.Millisecond))
	if err != nil {
		h.Fatal(err)
	}
	h.keep(events)
}
