package fakenode_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m)) }

// world is what most tests here need: a fleet of ready nodes, whose names start with prefix, and a namespace of that
// name.
type world struct {
	testing.TB
	client kubernetes.Interface
	fleet  *fakenode.Fleet
	nodes  []string
	ns     string
}

func open(t testing.TB, prefix string, nodes int, o fakenode.Options) *world {
	t.Helper()
	cluster := controlplane.Shared(t)
	w := &world{TB: t, client: cluster.Client(), ns: prefix, nodes: fakenode.Names(prefix, nodes)}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: prefix}}
	if _, err := w.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.fleet = fakenode.Start(t, cluster.Config(), o)
	w.must(w.fleet.Add(t.Context(), w.nodes...))
	w.fleet.WaitReady(t)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// pinned creates a claim of just these GPUs of a node.
func (w *world) pinned(name, node string, gpus ...int) {
	w.Helper()
	uuids := make([]string, len(gpus))
	for i, g := range gpus {
		uuids[i] = fakenode.UUID(node, g)
	}
	list, err := json.Marshal(uuids)
	w.must(err)
	w.claim(name, len(gpus), `device.attributes["`+fakenode.Driver+`"].uuid in `+string(list))
}

// claim creates a claim of n GPUs, with a selector unless that is "".
func (w *world) claim(name string, n int, selector string) {
	w.Helper()
	exact := &resourcev1.ExactDeviceRequest{DeviceClassName: fakenode.Driver, Count: int64(n)}
	if selector != "" {
		exact.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: selector}}}
	}
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: exact}}
	_, err := w.client.ResourceV1().ResourceClaims(w.ns).Create(w.Context(), c, metav1.CreateOptions{})
	w.must(err)
}

// pod returns a pod that must run on node and names claims.
func (w *world) pod(name, node string, claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns}}
	c := corev1.Container{Name: "main", Image: "none"}
	for i, claim := range claims {
		ref := fmt.Sprint("gpu", i)
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims,
			corev1.PodResourceClaim{Name: ref, ResourceClaimName: &claim})
		c.Resources.Claims = append(c.Resources.Claims, corev1.ResourceClaim{Name: ref})
	}
	p.Spec.Containers = []corev1.Container{c}
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{only(node)}},
	}}
	return p
}

// only selects one node.
func only(node string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
	}}
}

func (w *world) create(p *corev1.Pod) *corev1.Pod {
	w.Helper()
	p, err := w.client.CoreV1().Pods(w.ns).Create(w.Context(), p, metav1.CreateOptions{})
	w.must(err)
	return p
}

// delete deletes a pod with a grace period in seconds.
func (w *world) delete(name string, grace int64) {
	w.Helper()
	w.must(w.client.CoreV1().Pods(w.ns).Delete(w.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &grace}))
}

// limit is how long a test waits for what takes moments on an idle machine.
const limit = 3 * time.Minute

// until waits until the pod is as wanted, and returns it; nil where it is gone.
func (w *world) until(name, what string, ok func(*corev1.Pod) bool) *corev1.Pod {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), limit)
	defer cancel()
	for {
		p, err := w.client.CoreV1().Pods(w.ns).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			p = nil
		} else if err != nil {
			w.Fatalf("pod %s, waiting until %s: %v", name, what, err)
		}
		if ok(p) {
			return p
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			w.Fatalf("pod %s is not %s: %+v", name, what, p)
		}
	}
}

func (w *world) untilPhase(name string, phase corev1.PodPhase) *corev1.Pod {
	w.Helper()
	return w.until(name, string(phase), func(p *corev1.Pod) bool { return p != nil && p.Status.Phase == phase })
}

func (w *world) untilGone(name string) {
	w.Helper()
	w.until(name, "gone", func(p *corev1.Pod) bool { return p == nil })
}

// untilWaits waits until the pod's container waits for a reason.
func (w *world) untilWaits(name, reason string) {
	w.Helper()
	w.until(name, "waiting: "+reason, func(p *corev1.Pod) bool {
		if p == nil || len(p.Status.ContainerStatuses) == 0 {
			return false
		}
		waiting := p.Status.ContainerStatuses[0].State.Waiting
		return waiting != nil && (waiting.Reason == reason || strings.Contains(waiting.Message, reason))
	})
}

// exitCode of a pod that has ended.
func exitCode(p *corev1.Pod) int32 { return p.Status.ContainerStatuses[0].State.Terminated.ExitCode }

// allocated returns what a claim holds, as node/device.
func (w *world) allocated(name string) []string {
	w.Helper()
	c, err := w.client.ResourceV1().ResourceClaims(w.ns).Get(w.Context(), name, metav1.GetOptions{})
	w.must(err)
	if c.Status.Allocation == nil {
		return nil
	}
	var devices []string
	for _, r := range c.Status.Allocation.Devices.Results {
		devices = append(devices, r.Pool+"/"+r.Device)
	}
	return devices
}

// direct allocates GPUs of a node to a claim and binds a pod to it, with no scheduler, in the order of the protocol:
// finalizer, status, binding.
func (w *world) direct(claim string, p *corev1.Pod, node string, gpus ...int) {
	w.Helper()
	ctx, claims := w.Context(), w.client.ResourceV1().ResourceClaims(w.ns)
	c, err := claims.Get(ctx, claim, metav1.GetOptions{})
	w.must(err)
	c.Finalizers = append(c.Finalizers, resourcev1.Finalizer)
	c, err = claims.Update(ctx, c, metav1.UpdateOptions{})
	w.must(err)
	c.Status.Allocation = &resourcev1.AllocationResult{
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{only(node)}},
	}
	for _, g := range gpus {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
			resourcev1.DeviceRequestAllocationResult{
				Request: "gpu", Driver: fakenode.Driver, Pool: node, Device: fmt.Sprint("gpu-", g),
			})
	}
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: p.Name, UID: p.UID}}
	_, err = claims.UpdateStatus(ctx, c, metav1.UpdateOptions{})
	w.must(err)
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: p.UID}}
	binding.Target = corev1.ObjectReference{Kind: "Node", Name: node}
	w.must(w.client.CoreV1().Pods(w.ns).Bind(ctx, binding, metav1.CreateOptions{}))
}

// unscheduled returns a pod that no scheduler looks at, for direct.
func (w *world) unscheduled(name, node string, claims ...string) *corev1.Pod {
	p := w.pod(name, node, claims...)
	p.Spec.SchedulerName = "unknown"
	return p
}
