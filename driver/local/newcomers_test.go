package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/sched"
)

// endlessOn returns a driver without end of devices, which it looks at often.
func endlessOn(t *testing.T, dir string, epoch int64, b device.Backend) *Driver {
	t.Helper()
	d, err := New(Options{State: stateOf(dir), Epoch: epoch, Origin: time.Now().Add(-time.Hour * time.Duration(epoch)),
		Node: "here", Devices: b, Endless: true, Shim: shimOf(t)})
	if err != nil {
		t.Fatal(err)
	}
	d.hurry()
	return d
}

// Ensure that a GPU that is plugged in while a job runs is used at once, that the job keeps its own, and that both have
// their numbers for the next manager.
func TestDeviceJoins(t *testing.T) {
	t.Parallel()
	f := device.NewFake(gpu("A", "h", 80))
	w := newIdle(t, folder(t))
	w.start(fifo(t), endlessOn(t, w.dir, 1, f))
	goOn := t.TempDir() + "/go"
	w.submit(strings.Replace(waiter, "GO", goOn, 1))
	w.submit("exit 0")
	w.await(sched.AttemptStarted, 0, 1)
	f.Add(gpu("B", "h", 80))
	if e := w.await(sched.AttemptEnded, 1, 1); e.Outcome != sched.Finished {
		t.Errorf("job 1 ended as %v", e.Outcome)
	}
	if got := devicesOf(t, w.dir, 1, 1); !slices.Equal(got, []string{"B"}) {
		t.Errorf("job 1 on %v, want B", got)
	}
	if err := w.leave(); err == nil {
		t.Error("the run ended by itself")
	}
	w.start(fifo(t), endlessOn(t, w.dir, 2, f))
	w.submit("exit 0")
	w.await(sched.AttemptEnded, 2, 1)
	if got := devicesOf(t, w.dir, 2, 1); !slices.Equal(got, []string{"B"}) {
		t.Errorf("job 2 on %v, want B", got)
	}
	if n := w.kinds(sched.NodeJoined); n != 2 {
		t.Errorf("%d nodes joined, want 2", n)
	}
	touch(t, goOn)
	if e := w.await(sched.AttemptEnded, 0, 1); e.Outcome != sched.Finished {
		t.Errorf("job 0 ended as %v", e.Outcome)
	}
}

// Ensure that a device whose number was taken on the list, but not in the log, joins at the next start.
func TestDeviceListedNotLogged(t *testing.T) {
	t.Parallel()
	f := device.NewFake(gpu("A", "h", 80))
	w := newIdle(t, folder(t))
	w.start(fifo(t), endlessOn(t, w.dir, 1, f))
	waitFor(t, "a node", func() bool { return w.kinds(sched.NodeJoined) == 1 })
	if err := w.leave(); err == nil {
		t.Error("the run ended by itself")
	}
	f.Add(gpu("B", "h", 80))
	lost := endlessOn(t, w.dir, 2, f) // it is killed before anything of it is logged
	lost.Close()
	w.start(fifo(t), endlessOn(t, w.dir, 3, f))
	goOn := t.TempDir() + "/go"
	w.submit(strings.Replace(waiter, "GO", goOn, 1))
	w.submit(strings.Replace(waiter, "GO", goOn, 1))
	w.await(sched.AttemptStarted, 0, 1)
	w.await(sched.AttemptStarted, 1, 1)
	touch(t, goOn)
	w.await(sched.AttemptEnded, 0, 1)
	w.await(sched.AttemptEnded, 1, 1)
}

// Ensure that only a GPU that is missing and held by no one is forgotten, that this holds for the next manager, and
// that one which is back is used again.
func TestForgetDevice(t *testing.T) {
	t.Parallel()
	f := pair()
	w := newIdle(t, folder(t))
	w.start(fifo(t), endlessOn(t, w.dir, 1, f))
	goOn := t.TempDir() + "/go"
	w.submit(strings.Replace(waiter, "GO", goOn, 1))
	w.submit(strings.Replace(waiter, "GO", goOn, 1))
	w.await(sched.AttemptStarted, 1, 1)
	forget := func(g sched.GPUID) (err error) {
		<-w.box.Post(func(*sched.View, sched.JobID, sched.Time) (events []sched.Event) {
			events, err = w.d.Forget([]sched.GPUID{g})
			return events
		})
		return err
	}
	f.Lose("B")
	w.awaitGPU(1, 1, sched.GPUMissing)
	for g, says := range map[sched.GPUID]string{0: "holds it", 1: "job 1 holds it", 2: "want one of 2"} {
		if err := forget(g); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("GPU %d: %v, want %q", g, err, says)
		}
	}
	touch(t, goOn)
	w.await(sched.AttemptEnded, 0, 1)
	w.await(sched.AttemptEnded, 1, 1)
	if err := forget(0); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "it is there") {
		t.Errorf("one that is there: %v", err)
	}
	for range 2 {
		if err := forget(1); err != nil {
			t.Fatal(err)
		}
	}
	w.awaitGPU(1, 2, sched.GPUForgotten)
	if err := w.leave(); err == nil {
		t.Error("the run ended by itself")
	}
	w.start(fifo(t), endlessOn(t, w.dir, 2, f))
	w.submit("exit 0")
	w.await(sched.AttemptEnded, 2, 1)
	if s := w.d.Status()[1]; s.State != sched.GPUForgotten {
		t.Errorf("%+v after a restart, want it forgotten", s)
	}
	f.Set("B", by())
	w.awaitGPU(1, 3, sched.GPUInUse)
}

// Ensure that new devices are not used where the list of them cannot be written, and are once it can.
func TestListNotWritten(t *testing.T) {
	t.Parallel()
	f := device.NewFake(gpu("A", "h", 80))
	dir := folder(t)
	d, err := on(t, dir, 1, f)
	if err != nil {
		t.Fatal(err)
	}
	h := take(t, d, sched.View{})
	path := filepath.Join(dir, inventoryName)
	if err = errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700)); err != nil {
		t.Fatal(err)
	}
	f.Add(gpu("B", "h", 80))
	looked := d.dev.looked
	h.until("a look", func() bool { return d.dev.looked.After(looked) })
	h.passes(3)
	if len(d.dev.list) != 1 {
		t.Errorf("%v, want A alone", d.dev.list)
	}
	if err = os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	h.until("the new one", func() bool { return len(d.dev.list) == 2 })
}
