package whatif_test

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/whatif/whatiftest"
)

// Ensure that a future in which an event contradicts the state is an error for who asked: a panic would end the
// manager.
func TestBrokenFutureIsAnError(t *testing.T) {
	t.Parallel()
	scene := &whatiftest.Scene{System: "fifo"}
	_, m := scene.Node(2, 0).Job(60, sched.JobSpec{GPUs: sched.Rigid(1)}).Moment(t)
	jobs := sched.JobID(len(m.View().Jobs))
	tied := &sched.JobSpec{GPUs: sched.Rigid(1), Ties: sched.Ties{AfterOK: []sched.JobID{0}}} // to one it is not after
	wrong := sched.Event{Kind: sched.JobArrived, Job: jobs, Spec: tied}
	err := m.GoOn(t.Context(), &acts{does: []sched.Event{wrong}})
	if err == nil || !strings.Contains(err.Error(), "broke off") {
		t.Errorf("%v, want what broke", err)
	}
}
