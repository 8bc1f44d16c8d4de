package fakenode_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// diary notes which GPUs each pod's process saw, and what ended it.
type diary struct {
	sync.Mutex
	gpus map[string][]string
}

// run notes and then does what then does.
func (d *diary) run(then func(*fakenode.Process) int) func(*fakenode.Process) int {
	d.gpus = map[string][]string{}
	return func(p *fakenode.Process) int {
		d.Lock()
		d.gpus[p.Pod.Name] = p.GPUs
		d.Unlock()
		return then(p)
	}
}

// expect checks what a pod's process saw.
func (d *diary) expect(t *testing.T, pod, node string, gpus ...int) {
	t.Helper()
	var want []string
	for _, g := range gpus {
		want = append(want, fakenode.UUID(node, g))
	}
	d.Lock()
	defer d.Unlock()
	got := slices.Sorted(slices.Values(d.gpus[pod]))
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("pod %s saw %q, want %q", pod, got, want)
	}
}

// Ensure that 100 nodes of 8 GPUs get ready; that a pinned claim is given exactly the GPUs it names; that a pod pinned
// on the same GPUs waits, and has them once the first has saved and gone, with its exit code reported.
func TestPinnedHandOver(t *testing.T) {
	var d diary
	w := open(t, "pinned", 100, fakenode.Options{GPUs: 8, Run: d.run(fakenode.Script(0, 300*time.Millisecond, 143))})
	node := w.nodes[42]
	w.pinned("first", node, 5, 2)
	w.pinned("second", node, 5, 2)

	w.create(w.pod("first", node, "first"))
	w.untilPhase("first", corev1.PodRunning)
	if got, want := w.allocated("first"), []string{node + "/gpu-2", node + "/gpu-5"}; !slices.Equal(got, want) {
		t.Errorf("claim holds %q, want %q", got, want)
	}
	d.expect(t, "first", node, 2, 5)

	w.create(w.pod("second", node, "second"))
	w.until("second", "unschedulable", func(p *corev1.Pod) bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
		})
	})
	ended := w.endOf("first")
	w.delete("first", 60)
	if p := <-ended; p.Status.Phase != corev1.PodFailed || exitCode(p) != 143 {
		t.Errorf("the first pod ended %s with exit code %d, want Failed with 143", p.Status.Phase, exitCode(p))
	}
	w.untilPhase("second", corev1.PodRunning)
	d.expect(t, "second", node, 2, 5)
}

// endOf sends the pod's last state before it is gone.
func (w *world) endOf(name string) <-chan *corev1.Pod {
	w.Helper()
	watch, err := w.client.CoreV1().Pods(w.ns).Watch(w.Context(), metav1.SingleObject(metav1.ObjectMeta{Name: name}))
	w.must(err)
	last := make(chan *corev1.Pod, 1)
	go func() {
		defer watch.Stop()
		for e := range watch.ResultChan() {
			if p, ok := e.Object.(*corev1.Pod); ok && p.Status.ContainerStatuses[0].State.Terminated != nil {
				last <- p
				return
			}
		}
		close(last)
	}()
	return last
}

// Ensure that the direct protocol runs a pod on the GPU written, and that the claim is free once the pod has gone.
func TestDirect(t *testing.T) {
	var d diary
	w := open(t, "direct", 2, fakenode.Options{GPUs: 8, Run: d.run(fakenode.Script(0, 0, 0))})
	node := w.nodes[1]
	w.claim("job", 2, "")
	w.direct("job", w.create(w.unscheduled("job", node, "job")), node, 6, 0)
	w.untilPhase("job", corev1.PodRunning)
	d.expect(t, "job", node, 0, 6)

	w.delete("job", 60)
	w.untilGone("job")
	for end := time.Now().Add(limit); len(w.allocated("job")) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the claim is not free")
		}
	}
}

// Ensure that a pod bound with a claim that is not allocated does not start: a pod that is bound and nothing else.
func TestWaitsForItsClaim(t *testing.T) {
	w := open(t, "waits", 1, fakenode.Options{GPUs: 2})
	w.claim("job", 1, "")
	p := w.unscheduled("job", w.nodes[0], "job")
	p.Spec.NodeName = w.nodes[0]
	p.Spec.Affinity = nil
	p = w.create(p)
	w.untilWaits("job", "not allocated")
	w.delete("job", 60) // one that never started goes at once
	w.untilGone("job")
	if n := w.fleet.Running(); n != 0 {
		t.Errorf("%d processes of pod %s", n, p.Name)
	}
}

// Ensure that one GPU written into two claims is noted, as nothing else does; and that two pods of one claim are not.
func TestDoubleBooking(t *testing.T) {
	w := open(t, "double", 1, fakenode.Options{GPUs: 2, Tolerate: true})
	node := w.nodes[0]
	for _, name := range []string{"a", "b"} {
		w.claim(name, 1, "")
		w.direct(name, w.create(w.unscheduled(name, node, name)), node, 1)
		w.untilPhase(name, corev1.PodRunning)
	}
	want := []string{"gpu-1 of node double-000 has two owners: pod double/a and pod double/b"}
	if got := w.fleet.Violations(); !slices.Equal(got, want) {
		t.Errorf("violations %q, want %q", got, want)
	}

	w.pinned("shared", node, 0)
	w.create(w.pod("c", node, "shared"))
	w.create(w.pod("d", node, "shared"))
	w.untilPhase("c", corev1.PodRunning)
	w.untilPhase("d", corev1.PodRunning)
	if got := w.fleet.Violations(); !slices.Equal(got, want) {
		t.Errorf("after sharing, violations %q, want %q", got, want)
	}
}

// Ensure that a device that is not there is noted, and that its pod does not start.
func TestNoSuchDevice(t *testing.T) {
	w := open(t, "nodevice", 1, fakenode.Options{GPUs: 2, Tolerate: true})
	w.claim("job", 1, "")
	w.direct("job", w.create(w.unscheduled("job", w.nodes[0], "job")), w.nodes[0], 7)
	w.untilWaits("job", "no device gpu-7")
	if got := w.fleet.Violations(); len(got) != 1 {
		t.Errorf("violations %q, want one", got)
	}
}

// Ensure that a process that does not follow SIGTERM is killed after the grace period, and one that ends by itself
// reports its exit code and stays until it is deleted.
func TestEnds(t *testing.T) {
	w := open(t, "ends", 1, fakenode.Options{GPUs: 2, Run: func(p *fakenode.Process) int {
		if p.Pod.Name == "crash" {
			return 3
		}
		<-p.Kill
		return 0
	}})
	w.create(w.pod("crash", w.nodes[0]))
	if p := w.untilPhase("crash", corev1.PodFailed); exitCode(p) != 3 {
		t.Errorf("exit code %d, want 3", exitCode(p))
	}
	w.delete("crash", 60)
	w.untilGone("crash")

	w.create(w.pod("deaf", w.nodes[0]))
	w.untilPhase("deaf", corev1.PodRunning)
	ended := w.endOf("deaf")
	w.delete("deaf", 1)
	if p := <-ended; exitCode(p) != 137 {
		t.Errorf("exit code %d, want 137", exitCode(p))
	}
	w.untilGone("deaf")
}

// Ensure that GPUs named in the environment are those of the process, and that two pods that name one are noted.
func TestVisibleDevices(t *testing.T) {
	var d diary
	w := open(t, "visible", 1, fakenode.Options{GPUs: 4, Run: d.run(fakenode.Script(0, 0, 0)), Tolerate: true})
	node := w.nodes[0]
	p := w.pod("value", node)
	p.Spec.Containers[0].Env = []corev1.EnvVar{{
		Name: "NVIDIA_VISIBLE_DEVICES", Value: fakenode.UUID(node, 3) + "," + fakenode.UUID(node, 1),
	}}
	w.create(p)
	w.untilPhase("value", corev1.PodRunning)
	d.expect(t, "value", node, 1, 3)

	p = w.pod("annotation", node)
	p.Annotations = map[string]string{"trainyard.dev/gpus": fakenode.UUID(node, 1)}
	p.Spec.Containers[0].Env = []corev1.EnvVar{{
		Name: "NVIDIA_VISIBLE_DEVICES",
		ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['trainyard.dev/gpus']"}},
	}}
	w.create(p)
	w.untilPhase("annotation", corev1.PodRunning)
	d.expect(t, "annotation", node, 1)
	if got := w.fleet.Violations(); len(got) != 1 {
		t.Errorf("violations %q, want one", got)
	}
}

// Ensure that the device plugin gives each pod GPUs that no one has.
func TestPlugin(t *testing.T) {
	var d diary
	w := open(t, "plugin", 1, fakenode.Options{GPUs: 4, Plugin: true, Run: d.run(fakenode.Script(0, 0, 0))})
	for _, name := range []string{"a", "b"} {
		p := w.pod(name, w.nodes[0])
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
		w.create(p)
		w.untilPhase(name, corev1.PodRunning)
	}
	d.expect(t, "a", w.nodes[0], 0, 1)
	d.expect(t, "b", w.nodes[0], 2, 3)
}
