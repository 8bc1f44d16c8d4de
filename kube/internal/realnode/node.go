package realnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/trainyard/trainyard/kube/internal/controlplane"
)

// Options of a node.
type Options struct {
	GPUs  int
	Image []byte // what Image made: what pods run
}

// Node is a node that runs. Its methods may be called from any goroutine.
type Node struct {
	Name string

	plane   *controlplane.Cluster
	client  kubernetes.Interface
	bins    string
	folder  string
	gpus    int
	machine *machine
}

// readyLimit is how long a node may take to be ready: 10 s on an idle machine with two cores, many times that on a
// loaded one.
const readyLimit = 5 * time.Minute

// New makes a node, which is not up yet. When t ends so does the node; its folder is kept where t failed, and the ends
// of its logs are shown.
func New(t testing.TB, plane *controlplane.Cluster, name string, o Options) *Node {
	t.Helper()
	n := &Node{Name: name, plane: plane, client: plane.Client(), bins: Needs(t), gpus: o.GPUs}
	var err error
	if n.folder, err = os.MkdirTemp("", "node"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Halt(); err != nil {
			t.Errorf("realnode: %v", err)
		}
		if t.Failed() {
			t.Log(n.tails())
		} else if err := os.RemoveAll(n.folder); err != nil {
			t.Errorf("realnode: %v", err)
		}
	})
	if err := n.write(o.Image, controlplane.Port(t)); err != nil {
		t.Fatal(err)
	}
	return n
}

// Start makes a node and returns once it is ready and its GPUs are published.
func Start(t testing.TB, plane *controlplane.Cluster, name string, o Options) *Node {
	t.Helper()
	n := New(t, plane, name, o)
	if err := n.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

// Boot brings the node up: it registers, as the object that is there or a new one. It returns once it is ready, or with
// an error for which apierrors.IsNotFound holds once its object is gone again.
func (n *Node) Boot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	m, err := boot(n.folder, n.bins, cgroupOf(n.folder))
	if err != nil {
		return err
	}
	n.machine = m
	if err = n.register(ctx); err == nil {
		err = n.StartContainerd(ctx)
	}
	if err != nil {
		return err
	}
	err = errors.Join(n.ctr("images", "import", "--local", "--snapshotter", "native", n.path("image.tar")),
		n.StartKubelet(), n.StartPlugin())
	if err != nil {
		return err
	}
	return await(ctx, "node "+n.Name, n.ready)
}

// Halt ends the node as a loss of power does, and returns when no process, mount or cgroup of it is left. A node that
// is down already stays so.
func (n *Node) Halt() error {
	if n.machine == nil {
		return nil
	}
	err := n.machine.halt()
	n.machine = nil
	return err
}

// StartContainerd starts containerd, which does not run, and returns once it answers: without it a kubelet ends at
// once.
func (n *Node) StartContainerd(ctx context.Context) error {
	if err := n.machine.do("start", "containerd", n.bin("containerd"), "--config",
		n.path("containerd.toml")); err != nil {
		return err
	}
	return await(ctx, "containerd of "+n.Name, func(context.Context) error { return n.ctr("version") })
}

// StartKubelet starts the kubelet, which does not run.
func (n *Node) StartKubelet() error {
	return n.machine.do("start", "kubelet", n.bin("kubelet"), "--config", n.path("kubelet.yaml"), "--kubeconfig",
		n.plane.Kubeconfig(),
		"--hostname-override", n.Name, "--cert-dir", n.path("certs"), "--cloud-provider", "external", "--v", "2")
}

// StartPlugin starts the DRA plugin, which does not run.
func (n *Node) StartPlugin() error {
	return n.machine.do("start", "fakegpu", n.bin("fakegpu"), "--node", n.Name, "--gpus", fmt.Sprint(n.gpus),
		"--kubeconfig", n.plane.Kubeconfig())
}

// Stop kills a daemon of the node: containerd, kubelet or fakegpu. Containers go on.
func (n *Node) Stop(daemon string) error { return n.machine.do("stop", daemon) }

// Runs reports whether a process of a container is there, whose ID its pod's status gives. It asks no one but
// the kernel.
func (n *Node) Runs(container string) (bool, error) {
	_, id, _ := strings.Cut(container, "://")
	for _, hierarchy := range []string{"", "*"} { // cgroup v2, and v1
		files, err := filepath.Glob(filepath.Join("/sys/fs/cgroup", hierarchy, cgroupOf(n.folder), "kubepods", "*",
			"pod*", id, "cgroup.procs"))
		if err != nil {
			return false, err
		}
		for _, file := range files {
			if pids, err := os.ReadFile(file); len(pids) > 0 {
				return true, err
			}
		}
	}
	return false, nil
}

// register makes the object of the node, if there is none, with the loopback as its address: we are the cloud that
// names it. It makes the DeviceClass too.
func (n *Node) register(ctx context.Context) error {
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.nvidia.com"}}
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`}}}
	_, err := n.client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	nodes := n.client.CoreV1().Nodes()
	_, err = nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	at := []byte(`{"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}]}}`)
	_, err = nodes.Patch(ctx, n.Name, types.StrategicMergePatchType, at, metav1.PatchOptions{}, "status")
	return err
}

// ctr runs containerd's client to its end.
func (n *Node) ctr(args ...string) error {
	return n.machine.do(append([]string{"run", "ctr", n.bin("ctr"), "--namespace", "k8s.io"}, args...)...)
}

// ready returns what is missing before the node is.
func (n *Node) ready(ctx context.Context) error {
	object, err := n.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(object.Spec.Taints) > 0 {
		return fmt.Errorf("taints: %v", object.Spec.Taints)
	}
	for _, c := range object.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return errors.New(c.Message)
		}
	}
	slices, err := n.client.ResourceV1().ResourceSlices().List(ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name})
	if err != nil {
		return err
	}
	if len(slices.Items) == 0 || len(slices.Items[0].Spec.Devices) != n.gpus {
		return errors.New("no slice of its GPUs")
	}
	return nil
}

// await asks until try succeeds, ctx is done, or the API server has no such object.
func await(ctx context.Context, what string, try func(context.Context) error) error {
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is gone: %w", what, err)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s did not get ready: %w", what, err)
		}
	}
}

func (n *Node) bin(name string) string { return filepath.Join(n.bins, name) }

func (n *Node) path(name string) string { return filepath.Join(n.folder, name) }

// cgroupOf names the cgroup of a node after its folder, which no other has.
func cgroupOf(folder string) string { return "trainyard-" + filepath.Base(folder) }

// tails returns the ends of the node's logs.
func (n *Node) tails() string {
	const most = 4 << 10
	var b strings.Builder
	fmt.Fprintf(&b, "node %s in %s:\n", n.Name, n.folder)
	for _, name := range []string{"init", "ctr", "containerd", "kubelet", "fakegpu"} {
		text, err := os.ReadFile(n.path(name + ".log"))
		if err == nil {
			fmt.Fprintf(&b, "-- %s\n%s\n", name, text[max(0, len(text)-most):])
		}
	}
	return b.String()
}
