package local

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// offerer returns a driver without end that offers so many slots.
func offerer(t *testing.T, dir string, epoch int64, slots int) *Driver {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(Options{State: shim.State(dir), Epoch: epoch, Origin: time.Now(), Node: "here",
		Devices: device.Slots(slots), Endless: true,
		Offer: true, Shim: []string{exe, "shim"}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// renter rents a slot for each job that is not done, gives those that wait the slots there are, and lets go of slots of
// no one.
func renter(v *sched.View, d *sched.Desired) {
	count, taken := int32(0), make([]bool, len(v.GPUs))
	for id := range v.Jobs {
		j := &v.Jobs[id]
		if j.State == sched.Done {
			continue
		}
		count++
		for g := range v.GPUs {
			if g := sched.GPUID(g); j.State == sched.Waiting && len(j.Target) == 0 && v.Usable(g) &&
				v.GPUs[g].Targets == 0 && !taken[g] {
				taken[g] = true
				d.Give(sched.JobID(id), []sched.GPUID{g}, sched.Reason{Code: sched.WhyStarted})
				break
			}
		}
	}
	if count != v.Pools[0].Target {
		d.Pools = append(d.Pools, sched.PoolTarget{Pool: 0, Count: count})
	}
	for n := range v.Nodes {
		if n := sched.NodeID(n); count == 0 && v.Nodes[n].Joined() && v.Nodes[n].Target != sched.NodeGone {
			d.Nodes = append(d.Nodes, sched.NodeTarget{Node: n, State: sched.NodeGone})
		}
	}
}

// Ensure that a slot which is drained while no one rents it is not offered, that one which is drained while it is
// offered is not offered again after it was let go, that both hold after a restart, and that all are offered again once
// that is lifted.
func TestDrainOfWhatIsNotLent(t *testing.T) {
	t.Parallel()
	const slots = 3
	w := newIdle(t, folder(t))
	list, err := device.Slots(slots).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.state = engine.NewState(eventlog.Header{Pools: Pools(list), GPUs: slots, NodeGPUs: 1})
	w.start(decide(renter), offerer(t, w.dir, 1, slots))
	on := func(job sched.JobID) string {
		t.Helper()
		if e := w.await(sched.AttemptEnded, job, 1); e.Outcome != sched.Finished {
			t.Errorf("job %d ended as %v", job, e.Outcome)
		}
		return devicesOf(t, w.dir, int32(job), 1)[0]
	}
	drain := func(n sched.NodeID, state sched.NodeState) {
		t.Helper()
		if err := w.withhold(state == sched.NodeDraining, sched.GPUID(n)); err != nil {
			t.Fatal(err)
		}
	}
	drain(0, sched.NodeDraining)
	goOn := t.TempDir() + "/go"
	w.submit("until [ -e " + goOn + " ]; do sleep 0.02; done")
	w.await(sched.AttemptStarted, 0, 1)
	drain(1, sched.NodeDraining)
	touch(t, goOn)
	if got := on(0); got != "slot-1" {
		t.Errorf("the first job ran on %s, want slot-1: the one before is drained", got)
	}
	if err := w.leave(); !errors.Is(err, context.Canceled) {
		t.Fatalf("the run ended: %v", err)
	}
	w.start(decide(renter), offerer(t, w.dir, 2, slots))
	w.submit("exit 0")
	if got := on(1); got != "slot-2" {
		t.Errorf("the next job ran on %s, want slot-2, the only one that is not drained", got)
	}
	drain(0, sched.NodeUp)
	drain(1, sched.NodeUp)
	for range slots {
		w.submit("exit 0")
	}
	got := []string{on(2), on(3), on(4)}
	if slices.Sort(got); got[0] != "slot-0" {
		t.Errorf("jobs ran on %v, want slot-0 as well once its drain is lifted", got)
	}
}

// Ensure that of a list of GPUs with a wrong one none is withheld.
func TestTellAllOrNothing(t *testing.T) {
	t.Parallel()
	w := served(t, 2)
	if err := w.withhold(true, 0, 2); err == nil {
		t.Error("GPU 2 of two is taken")
	}
	if err := w.withhold(true, 1); err != nil {
		t.Fatal(err)
	}
	if n := w.kinds(sched.GPUChanged); n != 1 {
		t.Errorf("%d changes of GPUs, want that of GPU 1 alone: %v", n, w.events())
	}
}
