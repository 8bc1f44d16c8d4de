package realnode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/trainyard/trainyard/kube/internal/controlplane"
)

// RequireVar is the environment variable that makes a failure, and not a skip, of what a node needs and is not there.
const RequireVar = "TRAINYARD_REQUIRE_KUBE_NODE"

// binaries are those that a node needs, in addition to those of the control plane.
var binaries = []string{"kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "fakegpu"}

// Needs returns the folder with the binaries of a node and a control plane. Where a node cannot run it skips t, or
// fails it where TRAINYARD_REQUIRE_KUBE_NODE is set.
func Needs(t testing.TB) string {
	t.Helper()
	bins, err := controlplane.Find(binaries...)
	if err != nil {
		err = fmt.Errorf("%w; make kube-bins builds it", err)
	}
	switch err = errors.Join(possible(), err); {
	case err == nil:
	case os.Getenv(RequireVar) != "":
		t.Fatalf("a real Kubernetes node needed: %v", err)
	default:
		t.Skipf("no real Kubernetes node to test with: %v", err)
	}
	return bins
}

// possible returns what of the machine keeps a node from running.
func possible() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("this is %s, want linux", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("this is user %d, want root", os.Geteuid())
	}
	for _, program := range []string{"runc", "bash", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w; install it", err)
		}
	}
	return nil
}
