package realnode

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// bootVar has the test binary be a test that boots a machine in a folder and is killed.
const bootVar = "REALNODE_BOOT"

func TestMain(m *testing.M) {
	if folder := os.Getenv(bootVar); folder != "" {
		m, err := boot(folder, folder, cgroupOf(folder))
		if err == nil {
			err = m.do("start", "sleeps", "sleep", "1000000", folder)
		}
		fmt.Println("started", err)
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test that wants it ends
		os.Exit(0)
	}
	os.Exit(controlplane.Main(m))
}

// Ensure that a node ends, and leaves nothing, when its test is killed.
func TestRealEndsWithItsTest(t *testing.T) {
	Needs(t)
	folder, err := os.MkdirTemp("", "realnode") // its name is that of a cgroup: t.TempDir has the same for every run
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), bootVar+"="+folder)
	out, err := cmd.StdoutPipe()
	if err == nil {
		_, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "started <nil>\n" {
		t.Errorf("the other test: %q, %v", line, err)
	}
	if len(leftOf(t, folder)) < 3 { // process 1, what it started, its cgroups
		t.Errorf("of a node that runs there are only %v", leftOf(t, folder))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	for end := time.Now().Add(readyLimit); len(leftOf(t, folder)) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("left: %v", leftOf(t, folder))
		}
	}
}

// Ensure that a pod with a claim of chosen GPUs runs a real process, which is given these and no others; and that
// nothing of the node is left once it is down.
func TestRealRunsPod(t *testing.T) {
	Needs(t)
	plane := controlplane.Shared(t)
	var folder string
	up := func(t *testing.T) {
		n := Start(t, plane, "real-a", Options{GPUs: 8, Image: Trainer(t)})
		folder = n.folder
		work := t.TempDir()
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com",
				AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2,
				Selectors: []resourcev1.DeviceSelector{
					{CEL: &resourcev1.CELDeviceSelector{
						Expression: `device.attributes["gpu.nvidia.com"].uuid in ["GPU-real-a-5", "GPU-real-a-2"]`}}}}}}
		client := plane.Client()
		if _, err := client.ResourceV1().ResourceClaims("default").Create(t.Context(), claim,
			metav1.CreateOptions{}); err != nil {
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
	}
	if !t.Run("up", up) {
		return
	}
	if left := leftOf(t, folder); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// leftOf returns the mounts, processes and cgroups of a node that are there.
func leftOf(t *testing.T, folder string) (list []string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, folder) {
			list = append(list, "mount "+line)
		}
	}
	for _, pattern := range []string{"/proc/[0-9]*/cmdline", "/sys/fs/cgroup/" + cgroupOf(folder), "/sys/fs/cgroup/*/" +
		cgroupOf(folder)} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if !strings.HasPrefix(file, "/proc") || err == nil && strings.Contains(string(text), folder) {
				list = append(list, file+" "+string(text))
			}
		}
	}
	return list
}
