package local

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// animal is a job that is hard to end. MARK in its script is the time that its processes sleep.
type animal struct {
	name   string
	script string
	kill   bool // it does not go by itself when it is asked to
	env    bool // it keeps its environment, so that it is found without its shim
}

var zoo = []animal{
	{"plain", `echo ready; exec sleep MARK`, false, true},
	{"shell", `sleep MARK & echo ready; wait`, false, true},
	{"setsid", `setsid sleep MARK & setsid sh -c 'sleep MARK & sleep MARK' & echo ready; wait`, false, true},
	{"double fork", `(setsid sh -c 'sleep MARK & exec sleep MARK' &); (setsid sleep MARK &); echo ready; exec ` +
		`sleep MARK`, false, true},
	{"hidden", `(env -i setsid sleep MARK &); sleep 0.1; echo ready; exec sleep MARK`, false, false},
	{"deaf", `trap "" TERM; sleep MARK & sleep MARK & echo ready; while :; do sleep MARK; done`, true, true},
	{"deaf orphans", `(trap "" TERM HUP; setsid sleep MARK & setsid sleep MARK &); echo ready; exec sleep MARK`, true,
		true},
	{"bomb", `i=0; while [ $i -lt 200 ]; do sleep MARK & i=$((i+1)); done; echo ready; wait`, false, true},
	{"deaf bomb", `trap "" TERM; i=0; while [ $i -lt 200 ]; do setsid sleep MARK & i=$((i+1)); done; echo ready; ` +
		`sleep MARK; sleep MARK`, true, true},
	{"stopped", `sleep MARK & kill -STOP $!; sh -c 'kill -STOP $$; sleep MARK' & echo ready; sleep MARK & kill -STOP ` +
		`$!; kill -STOP $$; wait`, false, true},
	{"breeder", `trap "" TERM; echo ready; while :; do (: MARK; sleep 1; :) & sleep 0.05; done`, true, true},
}

// jobOf returns an animal as a job, and the mark of its processes.
func jobOf(t *testing.T, script string, grace time.Duration) (Arrival, string) {
	t.Helper()
	mark := newMark()
	job := task.Task{Command: []string{"sh", "-c", strings.ReplaceAll(script, "MARK", mark)}, Dir: t.TempDir(),
		Grace: grace}
	return Arrival{Spec: sched.JobSpec{GPUs: sched.Rigid(1), Task: job.Encode()}}, mark
}

// byCgroup runs a test with groups of processes in a cgroup, where that can be had, and without.
func byCgroup(t *testing.T, test func(t *testing.T, root string)) {
	for name, root := range map[string]string{"cgroup": procs.Root(), "session": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, root)
		})
	}
}

// release starts all animals, each on its own slot, and waits until they have shown what they do.
func release(t *testing.T, root string, animals []animal, grace time.Duration, shimCommand ...string) (h *hand,
	marks []string) {
	t.Helper()
	jobs := make([]Arrival, len(animals))
	marks = make([]string, len(animals))
	orders := make([]sched.Action, len(animals))
	for i := range animals {
		jobs[i], marks[i] = jobOf(t, animals[i].script, grace)
		orders[i] = start(sched.JobID(i), 1, sched.GPUID(i))
	}
	d := open(t, folder(t), 1, len(animals), jobs...)
	t.Cleanup(d.Close)
	d.cgroup = root
	if len(shimCommand) > 0 {
		d.o.Shim = append(shimCommand, d.o.Shim...)
	}
	h = take(t, d, sched.View{})
	h.arrivals(len(animals))
	h.apply(orders...)
	for i := range animals {
		h.outputHas(int32(i), 1, "ready")
	}
	return h, marks
}

// Ensure that whatever a job does, none of its processes is left when its end is reported, within the grace and 2 s.
func TestZoo(t *testing.T) {
	t.Parallel()
	byCgroup(t, func(t *testing.T, root string) {
		// a look at all processes takes long where all is busy, and two are needed to see who went by itself
		const grace = 5 * time.Second
		h, marks := release(t, root, zoo, grace)
		orders := make([]sched.Action, len(zoo))
		for i := range zoo {
			orders[i] = stop(sched.JobID(i), 1)
		}
		began := time.Now()
		h.apply(orders...)
		checked := make([]bool, len(zoo))
		h.until("ends", func() bool {
			all := true
			for i := range zoo {
				if e := h.find(sched.AttemptEnded, sched.JobID(i)); e != nil && !checked[i] {
					checked[i] = true
					none(t, marks[i])
				}
				all = all && checked[i]
			}
			return all
		})
		var slowest time.Duration
		for i := range zoo {
			h.end(sched.JobID(i), sched.Preempted)
			over := overOf(t, string(h.d.o.State), int32(i), 1)
			if over.Killed != zoo[i].kill || !over.Stopped {
				t.Errorf("%s: %+v, want it to be stopped, and killed %v", zoo[i].name, over, zoo[i].kill)
			}
			slowest = max(slowest, over.Ended.Sub(began))
		}
		t.Logf("slowest end %v after the order, grace %v", slowest.Round(time.Millisecond), grace)
		if slowest > grace+20*time.Second { // all at once here, next to other tests
			t.Errorf("slowest end %v after the order, want %v and 2 s", slowest, grace)
		}
	})
}

// Ensure that what a job leaves running when its own process ends is killed before the end is reported.
func TestLeavesChildren(t *testing.T) {
	t.Parallel()
	byCgroup(t, func(t *testing.T, root string) {
		job, mark := jobOf(t, `trap "" TERM; sleep MARK & (setsid sleep MARK &); (env -i setsid sleep MARK &); exit 7`,
			time.Minute)
		d := open(t, folder(t), 1, 1, job)
		t.Cleanup(d.Close)
		d.cgroup = root
		h := take(t, d, sched.View{})
		h.arrivals(1)
		h.apply(start(0, 1, 0))
		if e := h.end(0, sched.Failed); e.Code != 7 {
			t.Errorf("code %d, want 7", e.Code)
		}
		none(t, mark)
	})
}

// Ensure that processes of a shim that was killed are found and killed before its attempt is reported as lost.
func TestShimKilled(t *testing.T) {
	t.Parallel()
	byCgroup(t, func(t *testing.T, root string) {
		var animals []animal
		for _, a := range zoo {
			if a.env || root != "" {
				animals = append(animals, a)
			}
		}
		h, marks := release(t, root, animals, time.Minute)
		for i := range animals {
			h.await(sched.AttemptStarted, sched.JobID(i))
			killShim(t, h.d.o.State.RunDir(int32(i), 1))
		}
		for i := range animals {
			h.end(sched.JobID(i), sched.NodeLost)
			none(t, marks[i])
		}
	})
}

// Ensure that a job is not tried for ever whose shims die one after the other: it rests longer each time and has failed
// after ten of them in a row, for that reason; one that ran for long in between is tried again.
func TestShimAlwaysKilled(t *testing.T) {
	t.Parallel()
	h, marks := release(t, "", []animal{{script: "echo ready; exec sleep MARK"}}, time.Minute)
	deaths, ran := 0, int32(3) // the third attempt runs for ten minutes
	for n := int32(1); ; n++ {
		h.await(sched.AttemptStarted, 0)
		if n == ran {
			h.view.Jobs[0].Up, h.view.Jobs[0].LastStart = true, h.view.Now.Add(-longRun)
		}
		killShim(t, h.d.o.State.RunDir(0, n))
		e := h.await(sched.AttemptEnded, 0)
		none(t, marks[0])
		h.view.Jobs[0].Up = false
		if deaths++; n == ran {
			deaths = 1
		}
		if deaths == mostDeaths {
			if e.Outcome != sched.Failed || e.WorkFrom != sched.Never || !strings.HasPrefix(e.Text, task.GivenUp) ||
				!strings.Contains(e.Text, "10th time in a row") {
				t.Errorf("after %d deaths in a row: %+v, want it to have failed for good", deaths, e)
			}
			return
		}
		if want := time.Second << (deaths - 1); e.Outcome != sched.NodeLost || e.WorkFrom.Sub(e.Time) != want {
			t.Fatalf("death %d in a row: %v, rests %v, want %v", deaths, e.Outcome, e.WorkFrom.Sub(e.Time), want)
		}
		h.events = nil
		h.apply(start(0, n+1, 0))
		h.outputHas(0, n+1, "ready")
	}
}

// killShim kills the shim of an attempt, and nothing else.
func killShim(t *testing.T, dir shim.RunDir) {
	t.Helper()
	alive, err := dir.Alive()
	if err != nil || !alive.Lives() {
		t.Fatalf("no shim in %s: %v", dir, err)
	}
	p, err := os.FindProcess(alive.PID)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that a job's signals are not ignored, whatever was when its manager was started, and that the time of a grace
// is not waited for once all are gone.
func TestSignalsAreNotInherited(t *testing.T) {
	t.Parallel()
	deaf := []string{"sh", "-c", `trap "" TERM HUP INT QUIT PIPE USR1 USR2 TSTP TTIN TTOU CONT CHLD WINCH; exec "$@"`,
		"deaf"}
	h, marks := release(t, procs.Root(),
		[]animal{{script: `grep SigIgn /proc/self/status; echo ready; exec sleep MARK`}}, 10*time.Minute, deaf...)
	h.apply(stop(0, 1))
	h.end(0, sched.Preempted)
	none(t, marks[0])
	// 32 and 33 belong to the C library: make and others leave them ignored, and no one can catch them.
	var ignored uint64
	if _, err := fmt.Sscanf(h.output(0, 1), "SigIgn:\t%x", &ignored); err != nil || ignored&^(3<<31) != 0 {
		t.Errorf("signals %#x are ignored, %v", ignored, err)
	}
	if over := overOf(t, string(h.d.o.State), 0, 1); over.Killed || over.Code != 128+15 {
		t.Errorf("%+v, want death of SIGTERM", over)
	}
}
