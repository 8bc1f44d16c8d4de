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

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that the next job gets a slot only after the last process of the one before has gone.
func TestSlotIsNotReusedEarly(t *testing.T) {
	t.Parallel()
	list, marks := jobs(t, 500*time.Millisecond, `trap "" TERM; (setsid sleep MARK &); sleep MARK & echo ready; `+
		`while :; do sleep MARK; done`, `exit 0`)
	w := newWorld(t, fifo(t), 1, list, func(_ *sched.View, e *sched.Event) {
		if e.Kind == sched.AttemptEnded && e.Job == 0 {
			none(t, marks[0]) // before the next is ordered
		}
	})
	w.await(sched.AttemptStarted, 0, 1)
	w.box.Command(0, sched.CancelJob)
	w.finish()
	if e := w.await(sched.AttemptEnded, 0, 1); e.Outcome != sched.Cancelled {
		t.Errorf("the first ended as %v", e.Outcome)
	}
	if e := w.await(sched.AttemptEnded, 1, 1); e.Outcome != sched.Finished {
		t.Errorf("the second ended as %v", e.Outcome)
	}
	noOverlap(t, w.dir)
}

// Ensure that a job that is asked to stop has its whole grace, whoever of it goes first, and no more.
func TestGrace(t *testing.T) {
	t.Parallel()
	const saver = `trap 'sleep 1; echo saved; exit 3' TERM; echo ready; while :; do sleep 0.1; done`
	for _, c := range []struct {
		name, script, output string
		grace                time.Duration
		killed               bool
	}{
		{"saves", saver, "saved", time.Minute, false},
		{"saves under a shell that does not wait", `sh -c "` + saver + `"; echo never`, "saved", time.Minute, false},
		{"saves for too long", `trap 'sleep 300' TERM; echo ready; while :; do sleep 0.1; done`, "",
			1500 * time.Millisecond, true},
		{"10 s", `trap "" TERM; echo ready; while :; do sleep 300; done`, "", 10 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, marks := release(t, "", []animal{{script: "# MARK\n" + c.script}}, c.grace)
			began := time.Now()
			h.apply(stop(0, 1))
			e := h.end(0, sched.Preempted)
			none(t, marks[0])
			over := overOf(t, string(h.d.o.State), 0, 1)
			took := over.Ended.Sub(began)
			switch {
			case over.Killed != c.killed || over.Killed != strings.Contains(e.Text, "killed"):
				t.Errorf("%+v, reported as %q, want killed %v", over, e.Text, c.killed)
			case c.killed && (took < c.grace || took > c.grace+20*time.Second):
				t.Errorf("took %v, want %v and a little", took, c.grace)
			case !strings.Contains(h.output(0, 1), c.output) || strings.Contains(h.output(0, 1), "never"):
				t.Errorf("it wrote %q, want %q", h.output(0, 1), c.output)
			}
			t.Logf("took %v", took.Round(time.Millisecond))
		})
	}
}

// Ensure that a device that someone else has locked fails the start, is the suspect, is not tried again while it is
// locked, and is used once it is free.
func TestDeviceLocked(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	devices := filepath.Join(dir, "devices")
	if err := os.MkdirAll(devices, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := shim.Lock(filepath.Join(devices, "slot-1"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	list, _ := jobs(t, time.Second, "exit 0")
	list[0].Spec.GPUs = sched.Rigid(2)
	w, d := newIdle(t, dir), open(t, dir, 1, 2, list...)
	d.dev.lookEvery = 50 * time.Millisecond
	w.start(fifo(t), d)
	e := w.await(sched.StartFailed, 0, 1)
	if !slices.Equal(e.GPUs, []sched.GPUID{1}) || !strings.Contains(e.Text, "slot-1") {
		t.Errorf("suspects %v, %q, want GPU 1", e.GPUs, e.Text)
	}
	time.Sleep(1500 * time.Millisecond) // longer than the rest after a failed start
	freed := time.Now()
	_ = lock.Close()
	w.finish()
	if again := w.await(sched.Ordered, 0, 2); again.Time.Sub(e.Time) < time.Second {
		t.Errorf("tried again after %v, and was free %v ago", again.Time.Sub(e.Time), time.Since(freed))
	}
	if e := w.await(sched.AttemptEnded, 0, 1); e.Outcome != sched.Finished {
		t.Errorf("ended as %v", e.Outcome)
	}
}

// Ensure that a job that cannot be run fails once, with a code and words that say why.
func TestNothingToRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("not a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing")
	script := program(t, "script", "#!"+missing+"\n")
	neither := program(t, "neither", "not a program")
	cases := []struct {
		program, dir, text string
		code               int32
	}{
		{"trainyard-no-such-program", dir, "command trainyard-no-such-program: not found in PATH (/bin:/usr/bin), " +
			"want its path, or its folder there", 127},
		{missing, dir, "command " + missing + ": " + missing + ": no such file or directory, want a program", 127},
		{"./missing", dir, "command ./missing: " + missing + ": no such file or directory, want a program", 127},
		{plain, dir, "command " + plain + ": " + plain + " is not executable (permission denied), want chmod +x, or " +
			"its interpreter before it", 126},
		{dir, dir, "command " + dir + ": " + dir + " is a directory, want a program", 126},
		{"./script", filepath.Dir(script), "command ./script: what the first line of " + script + " names is not " +
			"found, want the interpreter of a script, or a program's loader", 127},
		{neither, dir, "command " + neither + ": " + neither + " is no program of this machine and starts with no " +
			"#!, want its interpreter before it", 126},
		{"true", missing, "folder to run in: " + missing + ": no such file or directory, want one that is there", 127},
		{"true", plain, "folder to run in: " + plain + " is not a directory, want one that is there", 126},
	}
	list := make([]Arrival, len(cases))
	for i, c := range cases {
		job := task.Task{Command: []string{c.program}, Dir: c.dir, Grace: time.Second,
			Env: map[string]string{"PATH": "/bin:/usr/bin"}}
		list[i] = Arrival{Spec: sched.JobSpec{GPUs: sched.Rigid(1), Task: job.Encode()}}
	}
	w := newWorld(t, fifo(t), 2, list)
	w.finish()
	for i, c := range cases {
		ends := w.all(sched.AttemptEnded, sched.JobID(i))
		if len(ends) != 1 || ends[0].Outcome != sched.Failed || ends[0].Code != c.code || ends[0].Text != c.text {
			t.Errorf("%s in %s: %+v, want one failure with %d, %q", c.program, c.dir, ends, c.code, c.text)
		}
	}
}

// Ensure that jobs that exchange their devices in one decision all stop, then all start, and never share one.
func TestExchange(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3} {
		t.Run([]string{2: "two", 3: "three"}[n], func(t *testing.T) {
			t.Parallel()
			slow := `[ $TRAINYARD_ATTEMPT = 2 ] && exit 0; trap 'sleep 0.WAIT; exit 1' TERM; echo ready; while :; ` +
				`do sleep 0.05; done`
			var scripts []string
			for i := range n {
				scripts = append(scripts, strings.Replace(slow, "WAIT", []string{"1", "8", "4"}[i], 1))
			}
			list, _ := jobs(t, 10*time.Second, scripts...)
			w := newWorld(t, exchanger(n), n, list)
			w.finish()
			for i := range int32(n) {
				first, second := devicesOf(t, w.dir, i, 1), devicesOf(t, w.dir, i, 2)
				if first[0] != slotName(i) || second[0] != slotName((i+1)%int32(n)) {
					t.Errorf("job %d had %v, then %v", i, first, second)
				}
				if ends := w.all(sched.AttemptEnded, sched.JobID(i)); len(ends) != 2 ||
					ends[0].Outcome != sched.Preempted || ends[1].Outcome != sched.Finished {
					t.Errorf("job %d: %v, want it to be preempted, then to finish", i, ends)
				}
			}
			noOverlap(t, w.dir)
		})
	}
}

func slotName(i int32) string { return fmt.Sprint("slot-", i) }

// exchanger gives job i slot i and, once all n run, slot i+1.
func exchanger(n int) decide {
	given, exchanged := false, false
	return func(v *sched.View, d *sched.Desired) {
		ready := len(v.Jobs) == n
		for i := range v.Jobs {
			ready = ready && (!given || v.Jobs[i].Up)
		}
		if !ready || exchanged {
			return
		}
		exchanged = given
		for i := range n {
			g := i
			if given {
				g = (i + 1) % n
			}
			d.Give(sched.JobID(i), []sched.GPUID{sched.GPUID(g)}, sched.Reason{})
		}
		given = true
	}
}

// Ensure that a shim that cannot do its work is tried again after a rest only.
func TestShimCannotStart(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "shim")
	for name, c := range map[string]struct{ command, want string }{"missing": {missing, missing}, "fails": {"false",
		"shim.log"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, _ := jobs(t, time.Second, "exit 0")
			d := open(t, folder(t), 1, 1, list...)
			d.o.Shim = []string{c.command}
			t.Cleanup(d.Close)
			h := take(t, d, sched.View{})
			h.arrivals(1)
			h.apply(start(0, 1, 0))
			if e := h.await(sched.StartFailed, 0); !strings.Contains(e.Text, c.want) {
				t.Errorf("reported as %q, want %s", e.Text, c.want)
			}
		})
	}
}

// Ensure that a shim that dies after it has started, before the job ran, is a failed start: else it would be tried at
// once, and again.
func TestShimBreaksEarly(t *testing.T) {
	t.Parallel()
	list, _ := jobs(t, time.Second, "exit 0")
	dir := folder(t)
	d := open(t, dir, 1, 1, list...)
	t.Cleanup(d.Close)
	// no socket can be there
	if err := os.MkdirAll(filepath.Join(dir, "jobs", "0", "1", "control"), 0o700); err != nil {
		t.Fatal(err)
	}
	h := take(t, d, sched.View{})
	h.arrivals(1)
	h.apply(start(0, 1, 0))
	if e := h.await(sched.StartFailed, 0); !strings.Contains(e.Text, "before the job ran") {
		t.Errorf("reported as %q", e.Text)
	}
	if _, err := d.o.State.Begin(0, 1); !errors.Is(err, shim.ErrBegun) {
		t.Errorf("%v, want it to be started", err)
	}
}

// Ensure that a job that fails is tried again after the rest that it wants, not before, also by a driver that was not
// there when it failed.
func TestBackoff(t *testing.T) {
	t.Parallel()
	a := arrival(t, 0, 1, "exit 3")
	spec, err := task.DecodeTask(a.Spec.Task)
	if err != nil {
		t.Fatal(err)
	}
	spec.Backoff = 300 * time.Millisecond
	a.Spec.Task, a.Spec.Retries = spec.Encode(), 2
	w := newWorld(t, fifo(t), 1, []Arrival{a})
	w.finish()
	ends, starts := w.all(sched.AttemptEnded, 0), w.all(sched.AttemptStarted, 0)
	if len(ends) != 3 || len(starts) != 3 {
		t.Fatalf("ends %v, starts %v, want 3 each", ends, starts)
	}
	for i := range 2 {
		if rest := starts[i+1].Time.Sub(ends[i].Time); rest < spec.Backoff ||
			ends[i].WorkFrom.Sub(ends[i].Time) != spec.Backoff {
			t.Errorf("rest %v before attempt %d, want %v", rest, i+2, spec.Backoff)
		}
	}
	d := &Driver{view: &sched.View{Jobs: []sched.Job{{Spec: &a.Spec}}}}
	if got := d.backoff(&sched.Event{Outcome: sched.Preempted}); got != 0 {
		t.Errorf("rest %v after a preemption, want none", got)
	}
}
