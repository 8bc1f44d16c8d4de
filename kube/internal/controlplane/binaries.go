package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The environment variables that Binaries reads.
const (
	FolderVar  = "TRAINYARD_KUBE_BINS"    // the folder of the binaries
	RequireVar = "TRAINYARD_REQUIRE_KUBE" // set: missing binaries are a failure, not a skip
)

// servers are the binaries that a control plane needs.
var servers = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// Binaries returns the folder with the control plane's binaries and those named in more. If one is missing it skips t,
// or fails it where TRAINYARD_REQUIRE_KUBE is set.
func Binaries(t testing.TB, more ...string) string {
	t.Helper()
	dir, err := Find(more...)
	switch {
	case err == nil:
	case os.Getenv(RequireVar) != "":
		t.Fatalf("Kubernetes needed: %v; make kube-bins builds it", err)
	default:
		t.Skipf("no Kubernetes to test with: %v; make kube-bins builds it", err)
	}
	return dir
}

// Find is Binaries for those who say themselves what becomes of a test where one is missing.
func Find(more ...string) (string, error) { return find(append(more, servers...)) }

// find returns the folder that has all names, absolute.
func find(names []string) (string, error) {
	dir := os.Getenv(FolderVar)
	if dir == "" {
		dir = above(filepath.Join("bin", "kube", "current"))
		if dir == "" {
			return "", fmt.Errorf("no folder bin/kube/current at or above the working directory, and %s is not set",
				FolderVar)
		}
	}
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return "", fmt.Errorf("no program %s in %s", name, dir)
		}
	}
	return filepath.Abs(dir)
}

// above walks up from the working directory to a folder that has path in it and returns that; "" if there is none.
func above(path string) string {
	at, err := os.Getwd()
	for err == nil {
		dir := filepath.Join(at, path)
		if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
			return dir
		}
		up := filepath.Dir(at)
		if up == at {
			break
		}
		at = up
	}
	return ""
}
