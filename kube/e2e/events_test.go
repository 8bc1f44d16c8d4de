package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// cast are processes that run until the test orders one to exit, by the name of its pod; at SIGTERM they do at once.
type cast struct {
	mu    sync.Mutex
	exits map[string]chan int
}

func (c *cast) exit(pod string) chan int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exits == nil {
		c.exits = make(map[string]chan int)
	}
	if c.exits[pod] == nil {
		c.exits[pod] = make(chan int, 1)
	}
	return c.exits[pod]
}

func (c *cast) run(p *fakenode.Process) int {
	select {
	case code := <-c.exit(p.Pod.Name):
		return code
	case <-p.Term:
	case <-p.Kill:
	}
	return 0
}

// events returns what kubectl describe shows of a job, in its order.
func (r *rig) events(name string) (list []string) {
	r.t.Helper()
	var tj v1alpha1.TrainingJob
	must(r.t, r.api.Get(r.t.Context(), client.ObjectKey{Namespace: r.space, Name: name}, &tj))
	var all corev1.EventList
	must(r.t, r.api.List(r.t.Context(), &all, client.InNamespace(r.space),
		client.MatchingFields{"involvedObject.uid": string(tj.UID)}))
	slices.SortStableFunc(all.Items, func(a, b corev1.Event) int {
		return cmp.Or(a.LastTimestamp.Compare(b.LastTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range all.Items {
		e := &all.Items[i]
		list = append(list, fmt.Sprintf("%s %s x%d: %s", e.Type, e.Reason, e.Count, e.Message))
	}
	return list
}

// untilReported waits until the last that is reported of a job starts with some words.
func (r *rig) untilReported(job, begins string) {
	r.t.Helper()
	var list []string
	defer func() {
		if r.t.Failed() {
			r.t.Logf("%s is reported:\n%s", job, strings.Join(list, "\n"))
		}
	}()
	eventually(r.t, fmt.Sprintf("%s is reported: %s", job, begins), func() bool {
		list = r.events(job)
		return len(list) > 0 && strings.HasPrefix(list[len(list)-1], begins)
	})
}

// Ensure that the life of a job is reported in order, each thing once, and again by no one who leads later.
func TestLifeIsTold(t *testing.T) {
	t.Parallel()
	var play cast
	r := newRig(t, 1, fakenode.Options{GPUs: 2, Run: play.run}, preemptive)
	r.serve()
	r.create(r.job("wide", 2, func(j *v1alpha1.TrainingJob) { j.Spec.Retries, j.Spec.Checkpoint.Path = 1, "/ckpt" }))
	r.untilReported("wide", "Normal Started x1: attempt 1")
	r.create(r.job("narrow", 1))
	r.untilReported("wide", "Normal Queued")
	play.exit("narrow-1-0") <- 0
	r.untilReported("wide", "Normal Started x1: attempt 2")
	r.suspend("wide", true)
	r.untilReported("wide", "Normal Paused")
	r.suspend("wide", false)
	r.untilReported("wide", "Normal Started x1: attempt 3")
	play.exit("wide-3-0") <- 3
	r.untilReported("wide", "Normal Started x1: attempt 4")
	must(t, r.api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.space, Name: "wide-4-0"}}))
	r.untilReported("wide", "Normal Started x1: attempt 5")
	r.kill() // a new leader, and nothing new
	r.serve()
	play.exit("wide-5-0") <- 0
	r.untilReported("wide", "Normal Finished")

	want := []string{
		"Warning CheckpointNotKept x1: checkpoint.path /ckpt is on no volume that container train mounts: what is " +
			"saved there goes with its pod",
		"Normal Started x1: attempt 1 runs on 2 GPUs: node-000/0-1",
		"Normal Preempted x1: its GPUs are for lab/narrow",
		"Normal Queued x1: needs 2 GPUs, 1 is free",
		"Normal Started x1: attempt 2 runs on 2 GPUs: node-000/0-1",
		"Normal Paused x1: suspended by its user",
		"Normal Resumed x1: its user lets it go on",
		"Normal Started x1: attempt 3 runs on 2 GPUs: node-000/0-1",
		"Warning Failed x1: pod wide-3-0: exit code 3 (Error); it is tried again, 1 of 1 times",
		"Normal Started x1: attempt 4 runs on 2 GPUs: node-000/0-1",
		"Warning NodeLost x1: someone else deleted pod wide-4-0",
		"Normal Started x1: attempt 5 runs on 2 GPUs: node-000/0-1",
		"Normal Finished x1: after ",
	}
	r.compare("wide", want)
	r.compare("narrow", []string{"Normal Started x1: attempt 1 runs on 1 GPU: node-000/0",
		"Normal Finished x1: after "})
}

// compare compares what is reported of a job with what is wanted to be, each by how it starts.
func (r *rig) compare(job string, want []string) {
	r.t.Helper()
	got := r.events(job)
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		r.t.Errorf("%s:\n%s\nwant:\n%s", job, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Ensure that a job that cannot start says why while it waits for that, writes its status for it once, and starts when
// it can.
func TestDelaysAreTold(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, controlplane.Options{Audit: true}, 1, fakenode.Options{GPUs: 2},
		v1alpha1.SchedulerPolicySpec{System: "fifo"})
	taint := func(list string) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-000"}}
		must(t, r.api.Patch(t.Context(), node,
			client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"taints":`+list+`}}`))))
	}
	taint(`[{"key":"repair","effect":"NoSchedule"}]`)
	r.serve()
	r.create(r.job("patient", 1))
	eventually(t, "the taint is reported", func() bool {
		st := r.status("patient")
		return st.Phase == v1alpha1.Starting &&
			strings.HasPrefix(st.Reason, "starts on node-000/0: pod patient-1-0 waits (Unschedulable: ") &&
			strings.Contains(st.Reason, "taint")
	})
	taint(`null`)
	if st := r.until("patient", v1alpha1.Running); st.Reason != "runs on node-000/0" || st.Attempt != 1 {
		t.Errorf("then: %+v", st)
	}
	r.kill()
	writes := 0
	for _, q := range r.plane.Requests(t) {
		if q.Verb == "patch" && q.Resource == "trainingjobs/status" && q.Code == 200 {
			writes++
		}
	}
	if writes < 3 || writes > 5 { // perhaps it waits; it starts, cannot, can again if that is seen before it runs, runs
		t.Errorf("%d writes of the status", writes)
	}
}
