package fakenode_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// Ensure that processes of a silent node go on, that nothing of them is reported, and that all of it is once the node
// speaks again.
func TestSilence(t *testing.T) {
	finish := make(chan struct{})
	w := open(t, "silent", 1, fakenode.Options{GPUs: 2, Run: func(p *fakenode.Process) int {
		if p.Pod.Name == "finishes" {
			return until(finish, 7)(p)
		}
		return until(p.Term, 143)(p)
	}})
	w.create(w.pod("finishes", w.nodes[0]))
	w.create(w.pod("stops", w.nodes[0]))
	w.untilPhase("finishes", corev1.PodRunning)
	w.untilPhase("stops", corev1.PodRunning)

	w.fleet.Silence(w.nodes[0])
	close(finish)
	w.delete("stops", 60)
	w.untilRunning(1) // one has finished, and the other has not heard that it is to stop
	p := w.untilPhase("finishes", corev1.PodRunning)
	if p.Status.ContainerStatuses[0].State.Terminated != nil {
		t.Error("a silent node reported an end")
	}

	w.fleet.Heal(w.nodes[0])
	if p := w.untilPhase("finishes", corev1.PodFailed); exitCode(p) != 7 {
		t.Errorf("exit code %d, want 7", exitCode(p))
	}
	w.untilGone("stops")
}

// until returns a process that runs until c is closed.
func until(c <-chan struct{}, code int) func(*fakenode.Process) int {
	return func(p *fakenode.Process) int {
		select {
		case <-c:
		case <-p.Kill:
		}
		return code
	}
}

// untilRunning waits until n processes run.
func (w *world) untilRunning(n int) {
	w.Helper()
	for end := time.Now().Add(limit); w.fleet.Running() != n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("%d processes run, want %d", w.fleet.Running(), n)
		}
	}
}

// Ensure that the control plane takes a silent node for not ready, and for ready once it speaks; that what a process
// does while the API server is down is reported once it is up.
func TestOutages(t *testing.T) {
	finish := make(chan struct{})
	cluster := controlplane.Start(t, controlplane.Options{NodeGrace: 8 * time.Second})
	w := &world{TB: t, client: cluster.Client(), ns: "default", nodes: []string{"a", "b"}}
	w.fleet = fakenode.Start(t, cluster.Config(), fakenode.Options{
		GPUs: 1, Heartbeat: time.Second, Run: until(finish, 7),
	})
	w.must(w.fleet.Add(t.Context(), w.nodes...))
	w.fleet.WaitReady(t)

	w.fleet.Silence("a")
	for end := time.Now().Add(limit); w.ready("a") != corev1.ConditionUnknown; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("node a is ready: %s, want Unknown", w.ready("a"))
		}
	}
	w.fleet.Heal("a")
	w.fleet.WaitReady(t)

	w.create(w.pod("job", "b"))
	w.untilPhase("job", corev1.PodRunning)
	cluster.StopAPIServer()
	close(finish)
	w.untilRunning(0)
	w.must(cluster.StartAPIServer(t.Context()))
	if p := w.untilPhase("job", corev1.PodFailed); exitCode(p) != 7 {
		t.Errorf("exit code %d, want 7", exitCode(p))
	}
}

// ready returns what the API says of a node's readiness.
func (w *world) ready(node string) corev1.ConditionStatus {
	w.Helper()
	n, err := w.client.CoreV1().Nodes().Get(w.Context(), node, metav1.GetOptions{})
	w.must(err)
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return "none"
}

// Ensure that a lost node's processes are gone unreported, and that they are reported as failed when it boots; that a
// node removed is gone.
func TestLose(t *testing.T) {
	w := open(t, "lost", 2, fakenode.Options{GPUs: 2})
	w.create(w.pod("job", w.nodes[0]))
	w.untilPhase("job", corev1.PodRunning)
	w.fleet.Lose(w.nodes[0])
	w.untilRunning(0)
	w.untilPhase("job", corev1.PodRunning)
	w.fleet.Heal(w.nodes[0])
	if p := w.untilPhase("job", corev1.PodFailed); exitCode(p) != 137 {
		t.Errorf("exit code %d, want 137", exitCode(p))
	}

	w.must(w.fleet.Remove(w.Context(), w.nodes[1]))
	nodes, err := w.client.CoreV1().Nodes().List(w.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=" + w.nodes[1]})
	w.must(err)
	if len(nodes.Items) > 0 {
		t.Error("a node that was removed is there")
	}
}

// Ensure that starts fail with the reason given until they do not, and that slow ones start.
func TestStarts(t *testing.T) {
	w := open(t, "starts", 1, fakenode.Options{GPUs: 2})
	w.fleet.FailStarts(w.nodes[0], "ImagePullBackOff")
	w.fleet.SlowStarts(w.nodes[0], 50*time.Millisecond)
	w.create(w.pod("job", w.nodes[0]))
	w.untilWaits("job", "ImagePullBackOff")
	w.fleet.FailStarts(w.nodes[0], "")
	w.untilPhase("job", corev1.PodRunning)
}

// Ensure that while a slice is hidden its GPUs are not given, and that they are afterwards.
func TestHideSlice(t *testing.T) {
	w := open(t, "hidden", 1, fakenode.Options{GPUs: 2})
	w.must(w.fleet.HideSlice(w.Context(), w.nodes[0]))
	w.claim("job", 1, "")
	w.direct("job", w.create(w.unscheduled("job", w.nodes[0], "job")), w.nodes[0], 1)
	w.untilWaits("job", "no device gpu-1")
	w.must(w.fleet.ShowSlice(w.Context(), w.nodes[0]))
	w.untilPhase("job", corev1.PodRunning)
}
