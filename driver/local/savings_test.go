package local

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// proofs are what attempts have shown about saving: attempt, what, and of SavedWork whether steps and work are there.
// That one started over is left out: it depends on how far the one before came.
func (h *hand) proofs() (list []string) {
	for i := range h.events {
		if e := &h.events[i]; e.Kind == sched.Saved && e.Code != sched.StartedOver {
			word := map[int32]string{sched.SavedWork: "saved", sched.SavedNothing: "nothing", sched.WentOn: "went-on",
				sched.FromZero: "from-zero"}[e.Code]
			list = append(list, fmt.Sprintf("%d:%s", e.Attempt, word))
		}
	}
	return list
}

// Ensure that what shows whether a job keeps its work is reported: before the end of an attempt that it saved, or saved
// nothing though it was asked and had the time; and at its first step that it went on from what was kept, or did not.
func TestProofs(t *testing.T) {
	t.Parallel()
	const (
		steps = `echo up; while :; do n=$((n+1)); echo TRAINYARD step=$n; sleep 0.02; done`
		tens  = `echo up; while :; do n=$((n+10)); echo TRAINYARD step=$n; sleep 0.02; done`
		load  = `n=$(cat $TRAINYARD_CHECKPOINT_DIR/n 2>/dev/null || echo 0); `
		save  = `cd $TRAINYARD_CHECKPOINT_DIR; echo $n > n.tmp; mv n.tmp n`
	)
	for name, c := range map[string]struct {
		script   string
		attempts int
		want     string
	}{
		"saves and resumes": {script: load + `trap '` + save + `; exit 75' TERM; ` + steps, attempts: 3,
			want: "1:saved 2:went-on 2:saved 3:went-on 3:saved"},
		"saves, but does not resume": {script: `n=0; trap '` + save + `; exit 75' TERM; ` + steps, attempts: 2,
			want: "1:saved 2:from-zero 2:saved"},
		"saves elsewhere, and says so": {script: `n=0; trap 'echo TRAINYARD saved step=$n; exit 75' TERM; ` + steps,
			attempts: 1, want: "1:saved"},
		"says that it is ready": {script: `n=0; trap 'echo TRAINYARD ready; exit 75' TERM; ` + steps, attempts: 1,
			want: "1:saved"},
		"says that it is ready, and lingers": {script: `n=0; trap 'echo TRAINYARD ready; sleep 300' TERM; ` + steps,
			attempts: 1, want: "1:saved"},
		"saves nothing":   {script: `n=0; trap 'exit 75' TERM; ` + steps, attempts: 1, want: "1:nothing"},
		"takes no signal": {script: `n=0; ` + steps, attempts: 2, want: "1:nothing 2:nothing"},
		"is asked before a step": {script: `n=0; trap 'exit 75' TERM; ` +
			`[ $TRAINYARD_ATTEMPT = 2 ] && { echo up; sleep 300; }; ` + steps, attempts: 2, want: "1:nothing"},
		"reports no steps at all": {script: `echo up; exec sleep 300`, attempts: 1, want: "1:nothing"},
		"reports each tenth step": {script: load + `trap '` + save + `; exit 75' TERM; ` + tens, attempts: 2,
			want: "1:saved 2:went-on 2:saved"},
		"each tenth, from zero": {script: `n=0; trap '` + save + `; exit 75' TERM; ` + tens, attempts: 2,
			want: "1:saved 2:from-zero 2:saved"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := task.Task{Command: []string{"sh", "-c", c.script}, Dir: t.TempDir(), Grace: time.Minute}
			d := open(t, folder(t), 1, 1, Arrival{Spec: sched.JobSpec{GPUs: sched.Rigid(1), Task: job.Encode()}})
			t.Cleanup(d.Close)
			h := take(t, d, sched.View{})
			h.arrivals(1)
			for n := int32(1); n <= int32(c.attempts); n++ {
				h.apply(start(0, n, 0))
				h.outputHas(0, n, "up")
				if name != "reports no steps at all" && (name != "is asked before a step" || n == 1) {
					h.until("steps", func() bool { return strings.Count(h.output(0, n), "step=") > 4 })
				}
				h.until("the start", func() bool { return h.of(sched.AttemptStarted, n) })
				h.apply(stop(0, n))
				h.until("the end", func() bool { return h.of(sched.AttemptEnded, n) })
			}
			if got := strings.Join(h.proofs(), " "); got != c.want {
				t.Errorf("%s, want %s\n%v", got, c.want, h.events)
			}
			h.inOrder(t)
		})
	}
}

// of reports whether a report of a kind came about an attempt.
func (h *hand) of(k sched.EventKind, n int32) bool {
	return slices.ContainsFunc(h.events, func(e sched.Event) bool { return e.Kind == k && e.Attempt == n })
}

// inOrder checks that proofs come after the start of their attempt and before its end.
func (h *hand) inOrder(t *testing.T) {
	t.Helper()
	running := int32(0)
	for i := range h.events {
		switch e := &h.events[i]; e.Kind {
		case sched.AttemptStarted:
			running = e.Attempt
		case sched.AttemptEnded:
			running = 0
		case sched.Saved:
			if e.Attempt != running {
				t.Errorf("%v of attempt %d while %d runs", e, e.Attempt, running)
			}
			if e.Code == sched.SavedWork && !(e.Value > 0) {
				t.Errorf("%v keeps no step", e)
			}
		}
	}
}

// Ensure that a save is reported while the job runs, whether a file shows it or the job says so, but not each of many.
func TestSavesAreReported(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"file":  `echo x > $TRAINYARD_CHECKPOINT_DIR/n; echo TRAINYARD step=7; exec sleep 300`,
		"words": `n=0; while :; do n=$((n+1)); echo TRAINYARD step=$n; echo TRAINYARD saved step=$n; sleep 0.005; done`,
	} {
		a := arrival(t, 0, 1, script)
		d := open(t, folder(t), 1, 1, a)
		t.Cleanup(d.Close)
		if name == "file" {
			d.o.Report = 50 * time.Millisecond // else it is looked for each 10 s
		}
		h := take(t, d, sched.View{})
		h.arrivals(1)
		h.apply(start(0, 1, 0))
		e := h.await(sched.Saved, 0)
		if e.Code != sched.SavedWork || !(e.Value > 0) {
			t.Errorf("%s: %+v, want work saved", name, e)
		}
		if name == "file" {
			continue
		}
		h.until("steps", func() bool { return strings.Count(h.output(0, 1), "saved") > 100 })
		h.apply(stop(0, 1))
		h.end(0, sched.Preempted)
		if n := len(h.proofs()); n > 10 {
			t.Errorf("%d saves are reported, want one each 10 s and the last", n)
		}
		var last sched.Event
		for _, e := range h.events {
			if e.Kind == sched.Saved {
				last = e
			}
		}
		if end := h.find(sched.AttemptEnded, 0); last.Value < end.Value-1 {
			t.Errorf("%v steps kept of %v, want the last save", last.Value, end.Value)
		}
	}
}

// Ensure that a driver that was not there when an attempt ended reports what it showed.
func TestProofOfMissed(t *testing.T) {
	t.Parallel()
	over := shim.Over{Stopped: true, Started: time.Now().Add(-time.Minute), StopAsked: time.Now().Add(-time.Second),
		Ended: time.Now()}
	a := &attempt{d: &Driver{}, odo: newReader().a.odo}
	a.meter = newTail(a, nil, nil)
	for cost, code := range map[loss]int32{
		{known: true, time: time.Minute}: sched.SavedNothing,
		{}:                               sched.SavedNothing,
		{known: true, saved: true, at: over.StopAsked}: sched.SavedWork,
	} {
		a.cost = cost
		e := sched.Event{Kind: sched.AttemptEnded, Outcome: sched.Preempted}
		proof, ok := a.proof(&e, &over)
		if !ok || proof.Code != code || proof.Kind != sched.Saved {
			t.Errorf("%+v, %v, want code %d", proof, ok, code)
		}
	}
	for name, x := range map[string]*shim.Over{"crashed": {Started: over.Started}, "no record": nil} {
		a.cost = loss{}
		if proof, ok := a.proof(&sched.Event{Kind: sched.AttemptEnded, Outcome: sched.Failed}, x); ok {
			t.Errorf("%s: %+v, want nothing shown", name, proof)
		}
	}
}

// Ensure that what an attempt shows by its first step is reported once, by whichever driver reads it: the one that
// started it, one that adopts it, and one that finds it over, however much it wrote.
func TestProofsOfUnwatched(t *testing.T) {
	t.Parallel()
	const (
		load  = `n=$(cat $TRAINYARD_CHECKPOINT_DIR/n 2>/dev/null || echo 0); `
		save  = `cd $TRAINYARD_CHECKPOINT_DIR; echo $n > n.tmp; mv n.tmp n`
		waits = `echo up; while [ $TRAINYARD_ATTEMPT = 2 ] && [ ! -e $TRAINYARD_CHECKPOINT_DIR/.go ]; do ` +
			`sleep 0.01; done; `
		steps = `until [ -e $TRAINYARD_CHECKPOINT_DIR/.end ]; do n=$((n+1)); echo TRAINYARD step=$n; sleep 0.01; done; `
		flood = `i=0; while [ $TRAINYARD_ATTEMPT = 2 ] && [ $i -lt 3000 ]; do i=$((i+1)); n=$((n+1)); ` +
			`echo TRAINYARD step=$n; echo 01234567890123456789012345678901234567890123456789; done; `
	)
	for name, c := range map[string]struct {
		script, want  string
		watched, over bool // the first step is read before the driver goes; the attempt ends before the next comes
	}{
		"goes on, adopted":      {script: load + waits, want: "1:saved 2:went-on 2:saved"},
		"goes on, over":         {script: load + waits, want: "1:saved 2:went-on 2:saved", over: true},
		"from zero, adopted":    {script: "n=0; " + waits, want: "1:saved 2:from-zero 2:saved"},
		"from zero, over":       {script: "n=0; " + waits, want: "1:saved 2:from-zero 2:saved", over: true},
		"from zero, much, over": {script: "n=0; " + waits + flood, want: "1:saved 2:from-zero 2:saved", over: true},
		"goes on, much, over":   {script: load + waits + flood, want: "1:saved 2:went-on 2:saved", over: true},
		"goes on, watched, over": {script: load + waits, want: "1:saved 2:went-on 2:saved", watched: true,
			over: true},
		"goes on, watched, adopted": {script: load + waits, want: "1:saved 2:went-on 2:saved", watched: true},
		"from zero, watched":        {script: "n=0; " + waits, want: "1:saved 2:from-zero 2:saved", watched: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := task.Task{Command: []string{"sh", "-c", "trap '" + save + "; exit 75' TERM; " + c.script + steps +
				save + "; exit 7"}, Dir: t.TempDir(), Grace: time.Minute}
			list := []Arrival{{Spec: sched.JobSpec{GPUs: sched.Rigid(1), Task: job.Encode()}}}
			p := &past{dir: folder(t), list: list}
			d := open(t, p.dir, 1, 2, list...)
			p.origin = d.o.Origin
			marker := func(name string) { touch(t, filepath.Join(d.o.State.Checkpoint(0), name)) }
			h := take(t, d, sched.View{})
			h.arrivals(1)
			h.apply(start(0, 1, 0))
			h.until("steps", func() bool { return strings.Count(h.output(0, 1), "step=") > 4 })
			h.apply(stop(0, 1))
			h.until("the end", func() bool { return h.of(sched.AttemptEnded, 1) })
			h.apply(start(0, 2, 0))
			h.outputHas(0, 2, "up")
			h.until("the start", func() bool { return h.of(sched.AttemptStarted, 2) })
			if c.watched {
				marker(".go")
				h.until("the first step", func() bool { return h.of(sched.Saved, 2) })
			}
			d.Close()
			if c.watched {
				keepJudged(t, d) // what it has of the job no one changes any more
			}
			marker(".go")
			waitFor(t, "steps", func() bool { return strings.Count(h.output(0, 2), "step=") > 4 })
			if c.over {
				marker(".end")
				waitFor(t, "the end", func() bool { _, err := d.o.State.RunDir(0, 2).Over(); return err == nil })
			}
			next := p.next(t, 2)
			events := h.events
			h = take(t, next, known(d, sched.Job{Attempt: sched.Running, Up: true, Attempts: 2}))
			h.events = append(events, h.events...)
			marker(".end")
			h.until("the end", func() bool { return h.of(sched.AttemptEnded, 2) })
			if got := strings.Join(h.proofs(), " "); got != c.want {
				t.Errorf("%s, want %s\n%v", got, c.want, h.events)
			}
			h.inOrder(t)
		})
	}
}

// keepJudged has a driver write down that the first step of an attempt was compared, as it does with the first speed.
func keepJudged(t *testing.T, d *Driver) {
	t.Helper()
	if err := d.o.State.Save(filepath.Join("jobs", "0", odometerFile), d.runs.progress[0].Kept); err != nil {
		t.Fatal(err)
	}
}
