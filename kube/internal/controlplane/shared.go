package controlplane

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared is the control plane of the test binary, once a test asked for it.
var shared struct {
	sync.Mutex
	cluster *Cluster
	err     error
}

// Shared returns the control plane that the tests of this binary share, and starts it for the first that asks. Tests
// keep apart by names of their own for namespaces and nodes. It skips t where the binaries are missing (see Binaries).
// Main stops it.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	bins := Binaries(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil && shared.err == nil {
		shared.cluster, shared.err = launch(bins, Options{})
	}
	if shared.err != nil {
		t.Fatalf("controlplane: %v", shared.err)
	}
	return shared.cluster
}

// Main runs the tests, stops the shared control plane, and returns the exit code for TestMain. When a test failed it
// shows the tails of the servers' logs, and keeps their directory.
func Main(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if c := shared.cluster; c != nil {
		if code != 0 {
			fmt.Fprint(os.Stderr, c.tails())
		}
		c.stop(code != 0)
	}
	return code
}
