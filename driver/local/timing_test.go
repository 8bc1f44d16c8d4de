package local

import (
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that what a running job may take of time is changed at once: by the driver that started it, by one that comes
// later and finds it changed, and by that one in turn.
func TestTimesOfRunning(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"followed": false, "changed before it is adopted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t)
			job, mark := jobOf(t, `trap "" TERM; echo ready; while :; do sleep 0.05; done # MARK`, time.Hour)
			d := open(t, dir, 1, 1, job)
			h := take(t, d, sched.View{})
			h.arrivals(1)
			h.apply(start(0, 1, 0))
			h.await(sched.AttemptStarted, 0)
			h.outputHas(0, 1, "ready")
			changed := job.Spec
			x, err := task.DecodeTask(changed.Task)
			if err != nil {
				t.Fatal(err)
			}
			x.TimeLimit, x.Grace = time.Millisecond, 100*time.Millisecond
			changed.Task = x.Encode()
			if late {
				d.Close()
				p := &past{dir: dir, origin: d.o.Origin, list: []Arrival{job}}
				next := p.next(t, 2)
				v := known(d, sched.Job{Attempt: sched.Running, Up: true, Attempts: 1})
				v.Jobs[0].Spec = &changed
				h = take(t, next, v)
			} else {
				t.Cleanup(d.Close)
				h.view.Jobs[0].Spec = &changed
			}
			e := h.end(0, sched.Failed)
			if over := overOf(t, dir, 0, 1); !over.TimedOut || !over.Killed || over.Grace != x.Grace ||
				!strings.HasPrefix(e.Text, task.Timeout) {
				t.Errorf("%+v, %q: want it timed out after a grace of %v", over, e.Text, x.Grace)
			}
			none(t, mark)
		})
	}
}
