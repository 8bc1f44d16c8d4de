package local

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
)

// onGPUs has fifo run jobs on fake GPUs that are looked at often.
func onGPUs(t *testing.T, f *device.Fake, scripts ...string) *world {
	t.Helper()
	list, _ := jobs(t, time.Second, scripts...)
	dir := folder(t)
	d, err := New(Options{State: stateOf(dir), Epoch: 1, Origin: time.Now(), Node: "here", Devices: f, Jobs: list,
		Shim: shimOf(t)})
	if err != nil {
		t.Fatal(err)
	}
	d.hurry()
	w := newIdle(t, dir)
	w.start(fifo(t), d)
	return w
}

// hurry has the driver look often, and believe at the second look.
func (d *Driver) hurry() {
	d.dev.lookEvery, d.dev.rule.Enter, d.dev.rule.Leave = 10*time.Millisecond, 0, 0
	d.dev.watch.Rule = d.dev.rule
}

// awaitGPU returns the n-th change of GPU g, from 1, once it is logged.
func (w *world) awaitGPU(g sched.GPUID, n int, want sched.GPUState) sched.Event {
	w.Helper()
	var last sched.Event
	waitFor(w.T, fmt.Sprintf("change %d of GPU %d", n, g), func() bool {
		k := 0
		for _, e := range w.events() {
			if e.Kind == sched.GPUChanged && e.Value == float64(g) {
				if k++; k == n {
					last = e
				}
			}
		}
		return k >= n
	})
	if last.Code != int32(want) {
		w.Fatalf("change %d of GPU %d is to %d, %q, want %d", n, g, last.Code, last.Text, want)
	}
	return last
}

// starts returns how many attempts were ordered so far.
func (w *world) starts() (n int) {
	for _, e := range w.events() {
		if e.Kind == sched.Ordered && e.Code == int32(sched.Start) {
			n++
		}
	}
	return n
}

// Ensure that a job waits as long as someone else is on the GPU, and starts when they have gone.
func TestForeignComesAndGoes(t *testing.T) {
	t.Parallel()
	f := device.NewFake(gpu("A", "h", 80))
	f.Set("A", by(os.Getpid()))
	w := onGPUs(t, f, "exit 0")
	w.awaitGPU(0, 1, sched.GPUForeign)
	w.await(sched.JobArrived, 0, 1)
	time.Sleep(50 * time.Millisecond)
	if w.starts() > 0 {
		t.Error("started next to someone else")
	}
	f.Set("A", by())
	w.awaitGPU(0, 2, sched.GPUInUse)
	w.finish()
	if e := w.all(sched.AttemptEnded, 0); len(e) != 1 || e[0].Outcome != sched.Finished {
		t.Errorf("%v, want one attempt that finished", e)
	}
}

// Ensure that a GPU whose memory stays in use after a job is given to no one until it is free, and that the other is
// used meanwhile.
func TestMemoryStays(t *testing.T) {
	t.Parallel()
	f := pair()
	// nothing to say about
	f.Set("A", device.Reading{UsedMiB: 4 << 10, Joules: device.Unknown, Listed: true, Display: true})
	dir, reported := folder(t), filepath.Join(t.TempDir(), "said")
	// the first is seen to run before it is over
	list, _ := jobs(t, time.Second, "until [ -e "+reported+" ]; do sleep 0.02; done", "exit 0", "exit 0")
	d, err := New(Options{State: stateOf(dir), Epoch: 1, Origin: time.Now(), Node: "here", Devices: f, Jobs: list[:1],
		Shim: shimOf(t)})
	if err != nil {
		t.Fatal(err)
	}
	d.hurry()
	d.dev.rule.Patience = 200 * time.Millisecond
	w := newIdle(t, dir)
	w.hooks = append(w.hooks, func(_ *sched.View, e *sched.Event) {
		if e.Kind == sched.AttemptStarted && e.Job == 0 {
			f.Set("A", device.Reading{UsedMiB: 70 << 10, Joules: device.Unknown, Listed: true})
			touch(t, reported)
		}
	})
	w.start(fifo(t), d)
	w.finish()
	stuck, ended := w.awaitGPU(0, 1, sched.GPUStuck), w.await(sched.AttemptEnded, 0, 1)
	if stuck.Time != ended.Time {
		t.Errorf("stuck at %v, ended at %v, want one instant: nothing is decided in between", stuck.Time, ended.Time)
	}
	if want := "70.0 GiB of its memory are in use by no process"; !strings.HasPrefix(stuck.Text, want) {
		t.Errorf("text %q, want %q", stuck.Text, want)
	}
	_ = w.leave()
	w.over <- nil

	// A later driver of the same folder finds it so by itself, and uses the other GPU.
	next, err := New(Options{State: stateOf(dir), Epoch: 2, Origin: time.Now().Add(-time.Hour), Node: "here",
		Devices: f, Jobs: list, Shim: shimOf(t)})
	if err != nil {
		t.Fatal(err)
	}
	next.hurry()
	began := len(w.events())
	w.run(fifo(t), next, nil)
	w.await(sched.AttemptEnded, 2, 1)
	for _, e := range w.events()[began:] {
		if e.Kind == sched.Decided && slices.Contains(e.GPUs, 0) {
			t.Errorf("%v is given GPU 0", e)
		}
	}
	if err := <-w.over; err != nil {
		t.Error(err)
	}
	w.over <- nil
}

// Ensure that a card that is lost is reported missing and given to no one, that the job on it goes on, and that it is
// used again when it is back.
func TestCardLost(t *testing.T) {
	t.Parallel()
	f := pair()
	gate := t.TempDir() + "/gate"
	w := onGPUs(t, f, "while ! [ -e "+gate+" ]; do sleep 0.02; done", "while ! [ -e "+gate+" ]; do sleep 0.02; done",
		"exit 0")
	w.await(sched.AttemptStarted, 1, 1)
	f.Lose("B")
	e := w.awaitGPU(1, 1, sched.GPUMissing)
	if e.Text != "it is not there" {
		t.Errorf("text %q", e.Text)
	}
	if ended := w.all(sched.AttemptEnded, 1); len(ended) > 0 {
		t.Errorf("%v, want the job left alone", ended)
	}
	touch(t, gate)
	w.await(sched.AttemptEnded, 2, 1)
	if got := devicesOf(t, w.dir, 2, 1); !slices.Equal(got, []string{"A"}) {
		t.Errorf("job 2 on %v, want A", got)
	}
	w.finish()
}

// Ensure that a back-end that hangs, and does not even end when it is asked to, holds up neither starts, ends, nor the
// close.
func TestBackendHangs(t *testing.T) {
	t.Parallel()
	f := pair()
	list, _ := jobs(t, time.Second, "exit 0", "exec sleep MARK")
	d, err := on(t, folder(t), 1, f, list...)
	if err != nil {
		t.Fatal(err)
	}
	d.dev.rule.Patience = 200 * time.Millisecond
	h := take(t, d, sched.View{})
	h.arrivals(2)
	answer := f.Hang()
	h.until("a look", func() bool { return d.dev.looking })
	h.apply(start(0, 1, 0), start(1, 1, 1))
	h.end(0, sched.Finished)
	if want := [][2]int32{{0, int32(sched.GPUStuck)}}; !slices.Equal(h.changes(), want) {
		t.Errorf("changes %v, want %v: no one saw it free", h.changes(), want)
	}
	h.await(sched.AttemptStarted, 1)
	answer()
	h.until("a look at last", func() bool { return len(h.changes()) == 2 })
	f.Hang() // over the close
}

// Ensure that who takes over while devices cannot be looked at gives them to no one, but leaves alone what jobs hold.
func TestUnseenAtFirst(t *testing.T) {
	t.Parallel()
	f := pair()
	f.Fail(fmt.Errorf("no answer"))
	d, err := on(t, folder(t), 1, f)
	if err != nil {
		t.Fatal(err)
	}
	h := take(t, d, sched.View{})
	if want := [][2]int32{{0, int32(sched.GPUStuck)}, {1, int32(sched.GPUStuck)}}; !slices.Equal(h.changes(), want) {
		t.Errorf("changes %v, want %v", h.changes(), want)
	}
	f.Fail(nil)
	h.until("both", func() bool { return len(h.changes()) == 4 })
}

// Ensure that memory that is held without work is warned of, once, with who holds it, and shown to who asks.
func TestHeldIdle(t *testing.T) {
	t.Parallel()
	f := pair()
	f.Set("A", by(os.Getpid()))
	var said bytes.Buffer
	d, err := New(Options{State: stateOf(folder(t)), Epoch: 1, Origin: time.Now(), Node: "here", Devices: f,
		Shim: shimOf(t),
		Log:  slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	d.dev.rule.IdleAfter = 50 * time.Millisecond
	d.hurry()
	h := take(t, d, sched.View{})
	held := func() bool { s := d.Status()[0]; return s.HeldIdle(&d.dev.rule) }
	h.until("held idle", held)
	h.passes(5)
	want := fmt.Sprintf(`by="process %d (1.0 GiB)"`, os.Getpid())
	if text := said.String(); strings.Count(text, "nothing done with it") != 1 || !strings.Contains(text, want) {
		t.Errorf("%s\nwant one warning with %s", text, want)
	}
	f.Set("A", by())
	h.until("free", func() bool { return !held() })
}

// Ensure that GPUs of two types are two nodes, with their names, numbered as the log says.
func TestTypes(t *testing.T) {
	t.Parallel()
	f := device.NewFake(gpu("A", "h", 80), gpu("B", "a", 40), gpu("C", "h", 79))
	for _, types := range [][]string{nil, {"a", "h"}} {
		d, err := New(Options{State: stateOf(folder(t)), Epoch: 1, Origin: time.Now(), Node: "here", Devices: f,
			Types: types, Shim: shimOf(t)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Close)
		h := take(t, d, sched.View{})
		var got []string
		for _, e := range h.events {
			if s := e.NodeSpec; s != nil {
				if err := s.Validate(); err != nil {
					t.Error(err)
				}
				got = append(got, fmt.Sprintf("%s %d %v %v", s.Name, s.Type, s.Devices, s.GPUMemGB))
			}
		}
		want := []string{"here/h 0 [A C] 79", "here/a 1 [B] 40"}
		if types != nil {
			want = []string{"here/h 1 [A C] 79", "here/a 0 [B] 40"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	d, err := New(Options{State: stateOf(folder(t)), Epoch: 1, Origin: time.Now(), Node: "here", Devices: f,
		Types: []string{"h"}, Shim: shimOf(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	const want = `local: device B of type "a", want one of the 1 types of the log`
	if _, err = d.Sync(t.Context(), &sched.View{}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Ensure that what GPUs draw and do is reported of the node and of each job on it, by the counters where there are any,
// and not again while nothing changes.
func TestMeasured(t *testing.T) {
	t.Parallel()
	f := pair()
	busy := device.Reading{UsedMiB: 8192, Use: .9, Watts: 400, Joules: device.Unknown}
	f.Set("A", busy)
	f.Set("B", device.Reading{Watts: 60, Joules: device.Unknown, Listed: true})
	list, _ := jobs(t, time.Second, "exec sleep MARK")
	d, err := on(t, folder(t), 1, f, list...)
	if err != nil {
		t.Fatal(err)
	}
	d.gauge.every = 50 * time.Millisecond
	state := engine.NewState(eventlog.Header{})
	h := take(t, d, sched.View{})
	fold := func() {
		for i := range h.events {
			if e := h.events[i]; e.Seq == 0 {
				state.Apply(&h.events[i])
			}
		}
		h.view = *state.View()
	}
	fold()
	h.arrivals(1)
	fold()
	h.apply(start(0, 1, 0))
	h.await(sched.AttemptStarted, 0)
	state.Apply(&sched.Event{Kind: sched.Decided, Time: d.now, Job: 0, GPUs: []sched.GPUID{0},
		Target: &sched.Target{Job: 0, Want: 1}})
	state.Apply(&sched.Event{Kind: sched.Ordered, Time: d.now, Job: 0, Attempt: 1, Code: int32(sched.Start)})
	for i := range h.events {
		h.events[i].Time = max(h.events[i].Time, state.View().Now)
	}
	fold()
	measured := func() (list []string) {
		for _, e := range h.events {
			if e.Kind == sched.Measured {
				list = append(list, fmt.Sprintf("node %d job %d: %.0f W, use %.1f, %.0f GB", e.Node, e.Job, e.Value,
					e.Rate, e.MemGB))
			}
		}
		return list
	}
	h.until("both measured", func() bool { return slices.Contains(measured(), "node -1 job 0: 400 W, use 0.9, 8 GB") })
	if want := "node 0 job -1: 460 W, use 0.9, 8 GB"; !slices.Contains(measured(), want) {
		h.until("the node, with the job on it", func() bool { return slices.Contains(measured(), want) })
	}
	n := len(measured())
	h.passes(20)
	if again := measured(); len(again) > n {
		t.Errorf("%q, want nothing reported again after the first %d", again, n)
	}
}

// Ensure that measured power is what the energy of a run is reckoned by: nothing else is known of the power of this
// machine.
func TestEnergyIsMeasured(t *testing.T) {
	t.Parallel()
	f := device.NewFake(gpu("A", "h", 80))
	f.Set("A", device.Reading{Use: 1, Watts: 400, Joules: device.Unknown})
	list, _ := jobs(t, time.Second, "sleep 1")
	dir := folder(t)
	d, err := New(Options{State: stateOf(dir), Epoch: 1, Origin: time.Now(), Node: "here", Devices: f, Jobs: list,
		Shim: shimOf(t)})
	if err != nil {
		t.Fatal(err)
	}
	d.hurry()
	d.gauge.every = 20 * time.Millisecond
	r := metrics.NewRecorder(1)
	w := newIdle(t, dir)
	var last sched.Time
	w.hooks = append(w.hooks, r.Log, func(_ *sched.View, e *sched.Event) { last = e.Time })
	w.start(fifo(t), d)
	w.finish()
	res := r.Result("fifo")
	const joules = 3.6e6 // of a kWh
	if got := res.EnergyKWh * joules; !(got > 0 && got <= 400*last.Seconds()*1.000001) {
		t.Errorf("%v J by %v, want some, and 400 W at most", got, last)
	}
}
