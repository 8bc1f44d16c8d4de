package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/testsize"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

var faults = testsize.Flag("faults", 20, 200, "times that the controller is killed, with ten jobs for each; the API "+
	"server is "+
	"killed a fifth as often")

// world is a rig whose processes are kept account of.
type world struct {
	*rig
	*ledger
	jobs []string
}

func newWorld(t *testing.T, plane controlplane.Options, nodes int, policy v1alpha1.SchedulerPolicySpec) *world {
	t.Helper()
	w := &world{ledger: newLedger()}
	w.rig = newRigOn(t, plane, nodes, fakenode.Options{GPUs: 8, Run: w.ledger.run, Heartbeat: time.Second}, policy)
	return w
}

// preemptive is a policy by which narrow jobs take GPUs of wide ones at any time.
var preemptive = v1alpha1.SchedulerPolicySpec{System: "fewest-gpus",
	Settings: map[string]string{"min_run": "0", "preempt_limit": "0"}}

// submit creates a job that trains for d; 0 = until it is asked to finish.
func (w *world) submit(name string, gpus int32, d time.Duration) {
	w.t.Helper()
	j := w.job(name, gpus)
	if d > 0 {
		j.Spec.Template.Annotations = map[string]string{runsFor: d.String()}
	}
	w.stubborn(func() error { return w.api.Create(w.t.Context(), j) })
	w.jobs = append(w.jobs, name)
}

// stubborn tries until the API server takes something.
func (w *world) stubborn(try func() error) {
	w.t.Helper()
	eventually(w.t, "the API server takes it", func() bool {
		err := try()
		return err == nil || apierrors.IsAlreadyExists(err)
	})
}

// crowd submits n jobs of different widths, which train for a moment.
func (w *world) crowd(n int, r *rand.Rand) {
	w.t.Helper()
	widths := []int32{1, 1, 1, 2, 2, 4, 8, 12}
	for range n {
		w.submit(fmt.Sprint("job-", len(w.jobs)), widths[r.IntN(len(widths))],
			time.Duration(200+r.IntN(2000))*time.Millisecond)
	}
}

// settle waits until all jobs succeeded, and checks that none was lost, none had two attempts at a time, no GPU two
// owners, and that nothing is left of them.
func (w *world) settle() {
	w.t.Helper()
	last, since := -1, time.Now()
	for last < len(w.jobs) {
		done := w.succeeded()
		if done != last {
			last, since = done, time.Now()
		}
		if time.Since(since) > patience {
			w.t.Fatalf("%d of %d jobs are done, and no other within %v%s", done, len(w.jobs), patience, w.reasons())
		}
		time.Sleep(100 * time.Millisecond)
	}
	eventually(w.t, "no claim and no process is left", func() bool {
		var claims resourcev1.ResourceClaimList
		return w.api.List(w.t.Context(), &claims) == nil && len(claims.Items) == 0 && w.fleet.Running() == 0
	})
	w.check(w.t)
}

// reasons says how the jobs stand that are not done.
func (w *world) reasons() (text string) {
	for _, name := range w.jobs {
		if st := w.status(name); st.Phase != v1alpha1.Succeeded {
			text += fmt.Sprintf("\n%s is %s in attempt %d: %s", name, st.Phase, st.Attempt, st.Reason)
		}
	}
	return text
}

// succeeded counts the jobs that did; one that failed ends the test.
func (w *world) succeeded() (n int) {
	w.t.Helper()
	var list v1alpha1.TrainingJobList
	w.stubborn(func() error { return w.api.List(w.t.Context(), &list) })
	for i := range list.Items {
		switch st := &list.Items[i].Status; st.Phase {
		case v1alpha1.Failed:
			w.t.Fatalf("%s failed: %+v", list.Items[i].Name, st)
		case v1alpha1.Succeeded:
			n++
		}
	}
	return n
}

// pod returns the pod of rank 0 of an attempt of a job.
func (w *world) pod(job string, attempt int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.space, Name: fmt.Sprintf("%s-%d-0", job, attempt)}}
}

// at waits until a job runs in an attempt, and returns its status.
func (w *world) at(job string, attempt int32) (st v1alpha1.TrainingJobStatus) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("%s runs in attempt %d", job, attempt), func() bool {
		st = w.status(job)
		return st.Phase == v1alpha1.Running && st.Attempt == attempt
	})
	return st
}

// Ensure that a controller that is killed again and again, whatever it is at, loses nothing and does nothing twice.
func TestControllerKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controlplane.Options{}, 3, preemptive)
	r := rand.New(rand.NewPCG(10, 10))
	p := w.launch()
	for range faults.N() {
		w.crowd(10, r)
		w.advance(int64(1 + r.IntN(60)))
		p.Kill()
		p = w.launch()
	}
	w.settle()
	if n := w.policy().Status.Leader; n < int64(faults.N()) {
		t.Errorf("%d controllers led, want at least %d", n, faults.N())
	}
}

// advance waits until so many events more are durable, or nothing is left to be done.
func (w *world) advance(events int64) {
	w.t.Helper()
	from := w.policy().Status.Version
	eventually(w.t, fmt.Sprint(events, " events more"), func() bool {
		return w.policy().Status.Version >= from+events || w.succeeded() == len(w.jobs)
	})
}

// Ensure that an API server that is gone for a while, while jobs come and go, costs nothing but time.
func TestAPIServerKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controlplane.Options{}, 3, preemptive)
	r := rand.New(rand.NewPCG(20, 20))
	w.serve()
	for range max(1, faults.N()/5) {
		w.crowd(10, r)
		w.advance(int64(1 + r.IntN(40)))
		w.plane.StopAPIServer()
		time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond) // in which processes end unseen
		if err := w.plane.StartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.settle()
}

// Ensure that what a node that is lost ran is run elsewhere, the other ranks of a gang as well, and that a node that is
// silent ends nothing: it gets no new jobs, and what it ran goes on, is heard of again and finishes.
func TestNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controlplane.Options{NodeGrace: 8 * time.Second}, 3,
		v1alpha1.SchedulerPolicySpec{System: "fifo-skip"})
	w.serve()
	for _, name := range []string{"a", "b", "c"} {
		w.submit(name, 4, 0)
	}
	w.submit("gang", 12, 0)
	var all []v1alpha1.AllocatedGPU
	for _, name := range w.jobs {
		all = append(all, w.at(name, 1).Allocation...)
	}
	silent := all[0].Node // of a
	w.fleet.Silence(silent)
	w.isReady(silent, false)
	w.submit("new", 1, 0) // fits nowhere else
	eventually(t, "the new job has a reason to wait", func() bool { return w.status("new").Reason != "" })
	w.finish("lab/a") // the node cannot report it
	for _, name := range []string{"a", "b", "c", "gang"} {
		if st := w.status(name); st.Phase != v1alpha1.Running || st.Attempt != 1 {
			t.Errorf("%s, while %s is silent: %+v", name, silent, st)
		}
	}
	if n, _ := w.attempts("lab/new"); n > 0 {
		t.Error("a job was started on a node that is silent")
	}
	w.fleet.Heal(silent)
	w.isReady(silent, true)
	if st := w.until("a", v1alpha1.Succeeded); st.Attempt != 1 {
		t.Errorf("a: %+v", st)
	}
	w.at("new", 1)
	w.at("gang", 1)

	lost := w.status("gang").Allocation[0].Node
	w.fleet.Lose(lost)
	w.isReady(lost, false)
	if st := w.status("gang"); st.Attempt != 1 {
		t.Errorf("gang, whose node only does not answer: %+v", st)
	}
	if err := w.fleet.Remove(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	if err := w.fleet.Add(t.Context(), "node-100", "node-101"); err != nil {
		t.Fatal(err)
	}
	if st := w.at("gang", 2); st.Restarts != 1 {
		t.Errorf("gang, whose node is gone: %+v", st)
	}
	for _, name := range []string{"b", "c", "gang", "new"} {
		w.finish("lab/" + name)
	}
	w.settle()
}

// isReady waits until the control plane takes a node for ready, or not.
func (w *world) isReady(name string, ready bool) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("node %s is ready: %v", name, ready), func() bool {
		var n corev1.Node
		if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: name}, &n); err != nil {
			w.t.Fatal(err)
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return (c.Status == corev1.ConditionTrue) == ready
			}
		}
		return !ready
	})
}

// Ensure that what others do to the objects of an attempt ends it or does not, and costs the job no try: its pod
// evicted, or deleted; its claim deleted while it is in use, and taken away by force.
func TestMeddling(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controlplane.Options{}, 1, v1alpha1.SchedulerPolicySpec{System: "fifo-skip"})
	w.serve()
	for _, name := range []string{"evicted", "deleted", "unclaimed", "robbed"} {
		w.submit(name, 2, 0)
	}
	for _, name := range w.jobs {
		w.at(name, 1)
	}
	pod := w.pod("evicted", 1)
	if err := w.api.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}); err != nil {
		t.Fatal(err)
	}
	if err := w.api.Delete(t.Context(), w.pod("deleted", 1)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"unclaimed", "robbed"} {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.space, Name: name + "-1"}}
		if err := w.api.Delete(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		if name == "robbed" {
			if err := w.api.Patch(t.Context(), claim, client.RawPatch("application/merge-patch+json",
				[]byte(`{"metadata":{"finalizers":null}}`))); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.at("evicted", 2)
	w.at("deleted", 2)
	w.submit("next", 2, 0) // all GPUs are in use, whatever claims say
	eventually(t, "the next job waits", func() bool { return w.status("next").Reason != "" })
	for _, name := range w.jobs[:4] {
		w.finish("lab/" + name)
	}
	for i, name := range w.jobs[:4] {
		if st := w.until(name, v1alpha1.Succeeded); int(st.Attempt) != []int{2, 2, 1, 1}[i] {
			t.Errorf("%s: %+v", name, st)
		}
	}
	w.finish("lab/next")
	w.settle()
}
