package controller

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	driverobserver "github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a job hears that its node does not answer, since when, and that it does again.
func TestSilenceIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiWith("fifo", v1alpha1.Count, nodeOf("a"), wide("x"))
		q := driverobserver.NewQueue()
		turn := func(is corev1.ConditionStatus) {
			n := new(corev1.Node)
			if err := api.Get(t.Context(), client.ObjectKey{Name: "a"}, n); err != nil {
				t.Error(err)
			}
			n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = is, metav1.Now()
			if err := api.Status().Update(t.Context(), n); err != nil {
				t.Error(err)
			}
			q.Push(driverobserver.KeysOf(n)...)
		}
		time.AfterFunc(20*time.Second, func() { turn(corev1.ConditionUnknown) })
		time.AfterFunc(60*time.Second, func() {
			if is := reasonOf(t, api, "x"); is != "a does not answer since 00:00:20 UTC; nothing is ended: if it is "+
				"dead, delete the node or taint it out-of-service" {
				t.Errorf("while it is silent: %q", is)
			}
			turn(corev1.ConditionTrue)
		})
		begunBy(t, api, q, 80*time.Second, nil)
		if is := reasonOf(t, api, "x"); is != "starts on a/0-1" {
			t.Errorf("once it answers: %q", is)
		}
	})
}

// Ensure that a job that is stopped for others hears for whom.
func TestStoppedFor(t *testing.T) {
	d := newDesk(t, interceptor.Funcs{})
	d.dec = none{}
	d.v.Nodes, d.v.GPUs = []sched.Node{{Spec: sched.NodeSpec{Name: "n", GPUs: 2}, State: sched.NodeUp}},
		make([]sched.GPU, 2)
	j := &d.v.Jobs[0]
	j.State, j.Attempt, j.GPUs = sched.Active, sched.Stopping, []sched.GPUID{0, 1}
	d.v.Jobs = append(d.v.Jobs, sched.Job{Spec: &sched.JobSpec{User: "lab", Name: "l1"}, State: sched.Waiting,
		Target: []sched.GPUID{0, 1}})
	d.live = []sched.JobID{0, 1}
	says := func(want string) {
		t.Helper()
		if is := d.reason(0, pipeline.Why(d.v, d.dec, 0)); is != want {
			t.Errorf("%q, want %q", is, want)
		}
	}
	says("is being stopped: its GPUs are for lab/l1")
	d.v.Jobs[0].Paused = true
	says("suspended by its user")
}

// Ensure that the progress that a job ends with is the last that it reported, however soon that came after what was
// reported before.
func TestLastProgress(t *testing.T) {
	d := newDesk(t, interceptor.Funcs{})
	j := &d.v.Jobs[0]
	j.State = sched.Done
	for said, want := range map[string]string{"": "step 8", "step 2": "step 8", "step 2 of 8": "step 8 of 8",
		"epoch 3": "epoch 3"} {
		d.jobs[0].said = said
		d.Log(d.v, &sched.Event{Kind: sched.AttemptEnded, Outcome: sched.Finished, Value: 8})
		if is := d.jobs[0].said; is != want {
			t.Errorf("after %q: %q, want %q", said, is, want)
		}
	}
	d.Log(d.v, &sched.Event{Kind: sched.AttemptEnded, Outcome: sched.Finished})
	if is := d.jobs[0].said; !slices.Contains(strings.Fields(is), "8") && is != "epoch 3" {
		t.Errorf("of an end without steps: %q", is)
	}
}
