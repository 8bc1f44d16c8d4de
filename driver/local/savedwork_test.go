package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// savedNothing is how the text of an end starts that cost all.
const savedNothing = "asked to save, saved nothing: lost"

// Ensure that the work kept is that of the newest checkpoint that can be whole, or all of it where the ready file is
// newer than the order to end, or the last words say so; and that an exit code says nothing.
func TestKept(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-time.Hour).Truncate(time.Second)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	stopped := shim.Over{Started: began, Stopped: true, StopAsked: at(100), Ended: at(110)}
	crashed := shim.Over{Started: began, Ended: at(110), Code: 1}
	const all = 500 // seconds of work, 100 of them of this attempt or 110
	for name, c := range map[string]struct {
		over  shim.Over
		save  task.Checkpoint
		files map[string]int // written at; the ready file lies in the run directory
		words string
		want  int
		text  string
	}{
		"nothing known": {over: stopped, want: all},
		"saved on demand": {over: stopped, files: map[string]int{"a": 50, "b": 105}, want: all,
			text: "saved"},
		"saved before": {over: stopped, files: map[string]int{"a": 20, "deep/b": 70}, want: all - 30,
			text: "last saved 30 s before: lost 30 s"},
		"saved by an earlier one": {over: stopped, files: map[string]int{"a": -20}, want: all - 100,
			text: savedNothing + " 1 min"},
		"half written": {over: stopped, files: map[string]int{"a": 60, "b.tmp": 105, "c.new": 105,
			".d": 105, ".e/f": 105}, want: all - 40, text: "last saved 40 s before: lost 40 s"},
		"ready": {over: stopped, save: task.Checkpoint{Ready: "done"},
			files: map[string]int{"a": 105, "done": 106}, want: all, text: "saved"},
		"not ready": {over: stopped, save: task.Checkpoint{Ready: "done"},
			files: map[string]int{"a": 60, "b": 105}, want: all - 40, text: "last saved 40 s before: lost 40 s"},
		"ready long ago": {over: stopped, save: task.Checkpoint{Ready: "done"},
			files: map[string]int{"a": 60, "b": 105, "done": 61}, want: all - 40,
			text: "last saved 40 s before: lost 40 s"},
		"not even a checkpoint": {over: stopped, save: task.Checkpoint{Ready: "done"}, want: all - 100,
			text: savedNothing + " 1 min"},
		"crashed": {over: crashed, files: map[string]int{"a": 80}, want: all - 30,
			text: "last saved 30 s before: lost 30 s"},
		"crashed, ready or not": {over: crashed, save: task.Checkpoint{Ready: "done"},
			files: map[string]int{"a": 80, "done": 81}, want: all - 30, text: "last saved 30 s before: lost 30 s"},
		"last words": {over: stopped, files: map[string]int{"a": 20}, words: "TRAINYARD ready\n",
			want: all, text: "saved"},
		"last words but one": {over: stopped, files: map[string]int{"a": 20}, words: "TRAINYARD ready\n" +
			"TRAINYARD step=9\n", want: all - 80, text: "last saved 1 min before: lost 1 min"},
		"finished, with no saving": {over: shim.Over{Started: began, Ended: at(110)}, files: map[string]int{"a": 20},
			want: all},
	} {
		r := newReader()
		dir := t.TempDir()
		r.a.dir, r.a.meter = shim.RunDir(filepath.Join(dir, "run")), r.tail
		c.save.Dir = filepath.Join(dir, "ckpt")
		if name == "nothing known" {
			c.save.Dir = ""
		}
		for file, when := range c.files {
			folder := c.save.Dir
			if file == c.save.Ready {
				folder = string(r.a.dir)
			}
			path := filepath.Join(folder, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			touch(t, path)
			if err := os.Chtimes(path, at(when), at(when)); err != nil {
				t.Fatal(err)
			}
		}
		r.at(0, c.words)
		r.a.odo = progress.NewOdometer(1, progress.Kept{}, all*time.Second)
		e := sched.Event{Kind: sched.AttemptEnded, Outcome: r.a.outcome(&c.over)}
		r.a.keep(&e, &shim.Order{State: shim.State(dir), Save: c.save}, &c.over)
		if e.Work.Round(time.Second) != time.Duration(c.want)*time.Second || e.Text != c.text {
			t.Errorf("%s: work %v, %q, want %d s, %q", name, e.Work, e.Text, c.want, c.text)
		}
	}
}

// Ensure that a job is asked to save by the signal that it wants, in the folder that it wants, that its ready file is
// found, and that it has not finished because it exits with 0.
func TestReadyFile(t *testing.T) {
	t.Parallel()
	for want, script := range map[string]string{
		"saved": `trap 'echo x > $TRAINYARD_CHECKPOINT_DIR/1; touch $TRAINYARD_RUN_DIR/.ready; exit ` +
			`0' USR1; trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done`,
		savedNothing: `trap 'echo x > $TRAINYARD_CHECKPOINT_DIR/1; exit 0' USR1; ` +
			`trap 'exit 7' TERM; sleep 0.3; echo up; while :; do sleep 0.05; done`,
	} {
		dir := t.TempDir()
		job := task.Task{Command: []string{"sh", "-c", script}, Dir: dir, Grace: time.Minute,
			Checkpoint: task.Checkpoint{Dir: filepath.Join(dir, "a", "b"), Signal: "USR1", Ready: ".ready"}}
		d := open(t, folder(t), 1, 1, Arrival{Spec: sched.JobSpec{GPUs: sched.Rigid(1), Task: job.Encode()}})
		t.Cleanup(d.Close)
		h := take(t, d, sched.View{})
		h.arrivals(1)
		h.apply(start(0, 1, 0))
		h.outputHas(0, 1, "up")
		h.apply(stop(0, 1))
		if e := h.end(0, sched.Preempted); e.Code != 0 || !strings.Contains(e.Text, want) {
			t.Errorf("%+v, want code 0 and %q", e, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "a", "b", "1")); err != nil {
			t.Error(err)
		}
	}
}

// Ensure that the step said to be saved is that of the checkpoint, where the job saves further on than it last
// reported.
func TestSavedStepIsThatOfTheCheckpoint(t *testing.T) {
	t.Parallel()
	const script = `trap 'echo x > $TRAINYARD_CHECKPOINT_DIR/1; echo TRAINYARD saved step=14; exit 3' TERM; ` +
		`echo TRAINYARD step=5; sleep 0.2; echo TRAINYARD step=10; echo up; while :; do sleep 0.05; done`
	job := task.Task{Command: []string{"sh", "-c", script}, Dir: t.TempDir(), Grace: time.Minute}
	d := open(t, folder(t), 1, 1, Arrival{Spec: sched.JobSpec{GPUs: sched.Rigid(1), Task: job.Encode()}})
	t.Cleanup(d.Close)
	h := take(t, d, sched.View{})
	h.arrivals(1)
	h.apply(start(0, 1, 0))
	h.outputHas(0, 1, "up")
	h.apply(stop(0, 1))
	if e := h.end(0, sched.Preempted); e.Text != "saved (step 14)" {
		t.Errorf("%+v, want it saved at step 14", e)
	}
}

// Ensure that what an end cost is said in the words that users know, with the step that is kept.
func TestLossText(t *testing.T) {
	t.Parallel()
	stopped := &shim.Over{Stopped: true}
	for want, c := range map[string]struct {
		loss  loss
		over  *shim.Over
		steps int64
	}{
		"saved (step 1200)":                   {loss{saved: true}, stopped, 1200},
		"saved":                               {loss{saved: true}, stopped, 0},
		savedNothing + " 41 min":              {loss{time: 41*time.Minute + 20*time.Second}, stopped, 1200},
		"last saved 3 min before: lost 3 min": {loss{time: 3 * time.Minute, saved: true}, stopped, 1200},
		"saved nothing: lost 3 h 12 min":      {loss{time: 192 * time.Minute}, &shim.Over{}, 7},
		"last saved 0.4 s before: lost 0.4 s": {loss{time: 402 * time.Millisecond, saved: true}, stopped, 7},
		"last saved 59 s before: lost 59 s":   {loss{time: 59940 * time.Millisecond, saved: true}, stopped, 7},
	} {
		if got := c.loss.text(c.over, c.steps); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
