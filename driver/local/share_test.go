package local

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
)

// counting is a job that ends an epoch now and then, until a file is there; it obeys at once.
const counting = `trap 'exit 1' TERM; i=0; while [ ! -e GO ]; do i=$((i+1)); echo TRAINYARD step=$i epoch=$i; sleep ` +
	`0.1; done`

// sharing gives slot 0 to jobs 0 and 1 together, has job 1 leave at the end of an epoch once both run, and gives the
// slot to job 2 alone when no one has it.
func sharing(v *sched.View, d *sched.Desired) {
	if len(v.Jobs) < 3 {
		return
	}
	for id := range sched.JobID(2) {
		if j := &v.Jobs[id]; j.State == sched.Waiting && j.Attempts == 0 && len(j.Target) == 0 {
			d.Give(id, []sched.GPUID{0}, sched.Reason{Code: sched.WhyTrial}).Share = sched.Shared
		}
	}
	if v.Jobs[0].Up && v.Jobs[1].Up && len(v.Jobs[1].Target) > 0 && v.Jobs[1].Later() == nil {
		d.Give(1, nil, sched.Reason{Code: sched.WhyUndone}).At = sched.AtEpochEnd
	}
	if g := &v.GPUs[0]; g.Holders == 0 && g.Targets == 0 && len(d.Jobs) == 0 && v.Jobs[2].State == sched.Waiting {
		d.Give(2, []sched.GPUID{0}, sched.Reason{Code: sched.WhyStarted})
	}
}

// Ensure that two jobs share a slot, one leaves it at the end of an epoch while the other goes on, and one that wants
// it alone has it when both have gone; whether the manager stays or is another after each event.
func TestSharedSlot(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"one manager": false, "two managers": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t)
			goOn := filepath.Join(t.TempDir(), "go")
			list, marks := jobs(t, 10*time.Second, strings.Replace(counting, "GO", goOn, 1),
				strings.Replace(counting, "GO", goOn+"1", 1), "exec sleep 0.2")
			list[0].Spec.Share, list[1].Spec.Share = sched.ShareAllow, sched.ShareAllow
			w := &world{T: t, dir: dir, state: engine.NewState(eventlog.Header{ShareLimit: 2}), box: host.NewMailbox(),
				news: make(chan struct{})}
			dec := decide(sharing)
			if restart { // it leaves when both are up and an end of an epoch is waited for
				w.run(dec, open(t, dir, 1, 1, list...), nil)
				w.await(sched.EpochEnded, 1, 1)
				if err := w.leave(); !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
			w.start(dec, open(t, dir, 2, 1, list...))
			left := w.await(sched.AttemptEnded, 1, 1)
			if left.Outcome != sched.Preempted || len(w.all(sched.EpochEnded, 1)) == 0 {
				t.Errorf("%+v after epochs %v, want preempted at the end of one", left, w.all(sched.EpochEnded, 1))
			}
			if ends, starts := w.all(sched.AttemptEnded, 0), w.all(sched.AttemptStarted, 2); len(ends)+len(starts) > 0 {
				t.Errorf("ends of job 0 %v, starts of job 2 %v, want none yet", ends, starts)
			}
			w.box.Command(1, sched.CancelJob)
			touch(t, goOn)
			w.await(sched.AttemptEnded, 2, 1)
			w.finish()
			for j := range w.state.View().Jobs {
				if n := w.state.View().Jobs[j].Attempts; n != 1 {
					t.Errorf("%d attempts of job %d, want 1", n, j)
				}
			}
			for _, mark := range marks {
				none(t, mark)
			}
			aloneAfter(t, dir, 2, 0, 1)
		})
	}
}

// aloneAfter fails the test unless a job started after others had ended, of which the second started before the first
// had.
func aloneAfter(t *testing.T, dir string, alone, a, b int32) {
	t.Helper()
	began := func(j int32) time.Time {
		alive, err := shim.State(dir).RunDir(j, 1).Alive()
		if err != nil {
			t.Fatal(err)
		}
		return alive.At
	}
	overA, overB := overOf(t, dir, a, 1), overOf(t, dir, b, 1)
	if !began(b).Before(overA.Ended) || !began(a).Before(overB.Ended) {
		t.Errorf("jobs %d and %d did not run together", a, b)
	}
	if at := began(alone); at.Before(overA.Ended) || at.Before(overB.Ended) {
		t.Errorf("job %d started at %v, before %v and %v", alone, at, overA.Ended, overB.Ended)
	}
}
