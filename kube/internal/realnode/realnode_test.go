package realnode

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/kube/internal/controlplane"
)

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m)) }

// Ensure that a pod with a claim of chosen GPUs runs a real process, which is given these and no others; and that nothing of the
// node is left once it is down.
func TestNodeRunsPod(t *testing.T) {
	Needs(t)
	plane := controlplane.Shared(t)
	var folder string
	t.Run("up", func(t *testing.T) {
		n := Start(t, plane, "real-a", Options{GPUs: 8, Image: Trainer(t)})
		folder = n.folder
		work := t.TempDir()
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com",
			AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2,
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.attributes["gpu.nvidia.com"].uuid in ["GPU-real-a-5", "GPU-real-a-2"]`}}}}}}
		client := plane.Client()
		if _, err := client.ResourceV1().ResourceClaims("default").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: PodSpec(work, "--steps", "20")}
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("c")}}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		var at *corev1.Pod
		for end := time.Now().Add(readyLimit); ; time.Sleep(100 * time.Millisecond) {
			var err error
			if at, err = client.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
			if at.Status.Phase == corev1.PodSucceeded {
				break
			}
			if time.Now().After(end) || at.Status.Phase == corev1.PodFailed {
				t.Fatalf("the pod: %+v", at.Status)
			}
		}
		line, err := os.ReadFile(filepath.Join(work, "given"))
		var given struct{ Given []string }
		if err == nil {
			err = json.Unmarshal(line, &given)
		}
		if want := []string{"GPU-real-a-2", "GPU-real-a-5"}; err != nil || !slices.Equal(given.Given, want) {
			t.Errorf("given %v, %v, want %v", given.Given, err, want)
		}
		logs, err := client.CoreV1().Pods("default").GetLogs("p", &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil || !strings.Contains(string(logs), "TRAINYARD done steps=20") {
			t.Errorf("logs %q, %v", logs, err)
		}
	})
	if folder == "" {
		t.Skip("no node came up")
	}
	wantNothingOf(t, folder)
}

// wantNothingOf checks that no mount, process or cgroup of a node is left.
func wantNothingOf(t *testing.T, folder string) {
	t.Helper()
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), folder) {
		t.Errorf("mounts of %s are left, %v", folder, err)
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range commands {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), folder) {
			t.Errorf("%s is left: %q", file, text)
		}
	}
	cgroups, err := filepath.Glob("/sys/fs/cgroup/*/" + cgroupOf(folder))
	if unified, _ := filepath.Glob("/sys/fs/cgroup/" + cgroupOf(folder)); err != nil || len(cgroups)+len(unified) > 0 {
		t.Errorf("cgroups are left: %v, %v, %v", cgroups, unified, err)
	}
}
