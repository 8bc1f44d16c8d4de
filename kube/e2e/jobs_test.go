package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// Ensure that jobs get exactly the GPUs that were decided, run, and succeed; and that their objects go.
func TestJobsRun(t *testing.T) {
	t.Parallel()
	// some of it is seen, however late its start is
	r := newRig(t, 2, fakenode.Options{GPUs: 4, Run: fakenode.Script(4*time.Second, 0, 0)},
		v1alpha1.SchedulerPolicySpec{System: "fifo-skip"})
	for i := range 6 {
		r.create(r.job(fmt.Sprint("job-", i), int32(1+i%3)))
	}
	r.create(r.job("wide", 8)) // both nodes
	r.serve()
	for i := range 6 {
		st := r.until(fmt.Sprint("job-", i), v1alpha1.Succeeded)
		if st.Attempt != 1 || st.Attained == "0s" {
			t.Errorf("job %d: %+v", i, st)
		}
	}
	if st := r.until("wide", v1alpha1.Succeeded); st.Attempt != 1 {
		t.Errorf("wide: %+v", st)
	}
	eventually(t, "no process is left", func() bool { return r.fleet.Running() == 0 })
	r.remove("wide")
}

// remove deletes a job and waits until it is gone.
func (r *rig) remove(name string) {
	r.t.Helper()
	if err := r.api.Delete(r.t.Context(), r.job(name, 1)); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, name+" is gone", func() bool {
		err := r.api.Get(r.t.Context(), client.ObjectKey{Namespace: r.space, Name: name}, &v1alpha1.TrainingJob{})
		return apierrors.IsNotFound(err)
	})
}

// Ensure that a job that ranks higher takes the GPUs of another, which saves within its grace and goes on later; and
// that a suspended one gives them back.
func TestPreemption(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, fakenode.Options{GPUs: 2, Run: fakenode.Script(0, 200*time.Millisecond, 0)},
		v1alpha1.SchedulerPolicySpec{System: "fewest-gpus",
			Settings: map[string]string{"min_run": "0", "preempt_limit": "0"}})
	r.serve()
	r.create(r.job("wide", 2))
	st := r.until("wide", v1alpha1.Running)
	if uuids := uuidsOf(st); !slices.Equal(uuids,
		[]string{fakenode.UUID("node-000", 0), fakenode.UUID("node-000", 1)}) {
		t.Errorf("wide has %v", uuids)
	}
	r.create(r.job("narrow", 1))
	r.until("narrow", v1alpha1.Running)
	if st := r.status("wide"); st.Phase != v1alpha1.Pending || len(st.Allocation) > 0 || st.Attempt != 1 {
		t.Errorf("wide: %+v", st)
	}
	r.suspend("narrow", true)
	if st := r.until("wide", v1alpha1.Running); st.Attempt != 2 || st.Restarts != 1 {
		t.Errorf("wide again: %+v", st)
	}
	if st := r.status("narrow"); st.Phase != v1alpha1.Pending {
		t.Errorf("narrow: %+v", st)
	}
	r.remove("wide") // while it runs
	r.suspend("narrow", false)
	r.until("narrow", v1alpha1.Running)
	r.remove("narrow")
}

func uuidsOf(st v1alpha1.TrainingJobStatus) (list []string) {
	for _, a := range st.Allocation {
		list = append(list, a.UUID)
	}
	return list
}

func (r *rig) suspend(name string, on bool) {
	r.t.Helper()
	body := fmt.Appendf(nil, `{"spec":{"suspend":%v}}`, on)
	if err := r.api.Patch(r.t.Context(), r.job(name, 1),
		client.RawPatch("application/merge-patch+json", body)); err != nil {
		r.t.Fatal(err)
	}
}

// Ensure that a controller that is replaced while jobs run finds them again: none is started twice.
func TestReplaced(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, fakenode.Options{GPUs: 4, Run: fakenode.Script(6*time.Second, 0, 0)},
		v1alpha1.SchedulerPolicySpec{System: "fifo-skip"})
	for i := range 12 {
		r.create(r.job(fmt.Sprint("job-", i), 1))
	}
	for range 4 {
		r.serve()
		time.Sleep(1500 * time.Millisecond)
		r.kill()
	}
	r.serve()
	for i := range 12 {
		if st := r.until(fmt.Sprint("job-", i), v1alpha1.Succeeded); st.Attempt != 1 {
			t.Errorf("job %d: %+v", i, st)
		}
	}
}

// Ensure that a job that is deleted while it runs and made again under its name runs as any new job does.
func TestMadeAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, fakenode.Options{GPUs: 2, Run: fakenode.Script(0, time.Second, 0)},
		v1alpha1.SchedulerPolicySpec{System: "fifo-skip"})
	r.serve()
	for range 4 {
		r.create(r.job("again", 1))
		r.until("again", v1alpha1.Running)
		must(t, r.api.Delete(t.Context(), r.job("again", 1)))
		must(t, r.api.Create(t.Context(), r.job("again", 1)))
		if st := r.until("again", v1alpha1.Running); st.Attempt != 1 {
			t.Errorf("made again: %+v", st)
		}
		must(t, r.api.Delete(t.Context(), r.job("again", 1)))
		eventually(t, "nothing runs", func() bool { return r.fleet.Running() == 0 })
	}
}
