package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a shim that is this program, however it was replaced since, is called by its name in a list of processes.
func TestShimIsListed(t *testing.T) {
	t.Parallel()
	list, _ := jobs(t, time.Second, "exec sleep 300")
	dir := folder(t)
	d := open(t, dir, 1, 1, list...)
	d.o.Shim = []string{"/proc/self/exe", "shim"}
	t.Cleanup(d.Close)
	h := take(t, d, sched.View{})
	h.arrivals(1)
	h.apply(start(0, 1, 0))
	h.await(sched.AttemptStarted, 0)
	run := shim.State(dir).RunDir(0, 1)
	alive, err := run.Alive()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", alive.PID))
	if got, want := strings.ReplaceAll(string(b), "\x00", " "), "trainyard shim "+string(run)+" "; err != nil ||
		got != want {
		t.Errorf("listed as %q, %v, want %q", got, err, want)
	}
	h.apply(stop(0, 1))
	h.end(0, sched.Preempted)
}

// Ensure that a shim that died about when the job was to start is reported as that: the job may have run.
func TestPerhapsStarted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gone []string
		kind sched.EventKind
		text string
	}{
		"perhaps": {[]string{"alive.json"}, sched.AttemptEnded, "its shim died, perhaps before the job ran"},
		"never":   {[]string{"alive.json", "starting.json"}, sched.StartFailed, "its shim died before the job ran"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begun(t)
			killShim(t, p.run())
			p.gone(t)
			for _, file := range c.gone {
				if err := os.Remove(filepath.Join(string(p.run()), file)); err != nil {
					t.Error(err)
				}
			}
			p.view.Jobs[0].Attempt, p.view.Jobs[0].Up = sched.Starting, false
			h := take(t, p.next(t, 2), p.view)
			if e := h.await(c.kind, 0); !strings.HasPrefix(e.Text, c.text) {
				t.Errorf("reported as %q, want %q", e.Text, c.text)
			}
			none(t, p.mark)
		})
	}
}

// Ensure that who is about to start a job says so before it runs.
func TestStartingIsOnRecord(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	job := task.Task{Command: []string{"cat", filepath.Join(dir, "jobs", "0", "1", "starting.json")}, Dir: dir,
		Grace: time.Second}
	d := open(t, dir, 1, 1, Arrival{Spec: sched.JobSpec{GPUs: sched.Rigid(1), Task: job.Encode()}})
	t.Cleanup(d.Close)
	h := take(t, d, sched.View{})
	h.arrivals(1)
	h.apply(start(0, 1, 0))
	if e := h.end(0, sched.Finished); !strings.Contains(h.output(0, 1), `"pid":`) {
		t.Errorf("%+v, %q, want the record", e, h.output(0, 1))
	}
}
