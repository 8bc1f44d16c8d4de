package allocate

import (
	"testing"

	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that it is reported with how many GPUs a job would be started, that one of which no speed is known is held to
// the width that it asks for, and who keeps others waiting.
func TestLeast(t *testing.T) {
	v, c := twoJobs(4, 0, 0)
	v.Jobs[0].Spec.GPUs = sched.Range{Min: 2, Want: 3, Max: 4}
	v.Jobs[1].Spec.GPUs = sched.Range{Min: 2, Want: 3, Max: 4}
	c[1] = nil
	queue := &Divide{Rates: &Rates{Curves: c}, Rule: &Sum{}, Admits: true, Mode: elastic.Queue}
	explained(queue, v, 0)
	for j, want := range []struct {
		least int32
		known bool
	}{{2, true}, {3, false}} {
		for _, n := range []sched.Narrowest{queue, &Autoscale{Divide: queue}, ByClass{Grants: queue}} {
			if least, known := n.Least(v, sched.JobID(j)); least != want.least || known != want.known ||
				!n.Holds(v, sched.JobID(j)) {
				t.Errorf("%T, job %d: %d, %v, holds %v, want %+v and that others wait for it", n, j, least, known,
					n.Holds(v, sched.JobID(j)), want)
			}
		}
	}
	if v.Jobs[1].Spec.GPUs = sched.Rigid(9); queue.Holds(v, 1) {
		t.Error("a job that never fits keeps others waiting")
	}
	if free := (&Divide{Rates: queue.Rates, Rule: Evenly{}}); free.Holds(v, 0) {
		t.Error("no one is admitted in order, and others wait")
	}
}
