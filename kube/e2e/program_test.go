package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/trainyard/trainyard/kube/internal/controlplane"
)

// program is trainyard-kube, once a test asked for it.
var program struct {
	sync.Once
	dir string
	err error
}

func TestMain(m *testing.M) {
	code := controlplane.Main(m)
	if program.dir != "" {
		os.RemoveAll(program.dir)
	}
	os.Exit(code)
}

// build returns the path of trainyard-kube, which it builds once.
func build(t testing.TB) string {
	t.Helper()
	program.Do(func() {
		if program.dir, program.err = os.MkdirTemp("", "trainyard-kube"); program.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", program.dir, "../cmd/trainyard-kube").CombinedOutput()
		if err != nil {
			program.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return filepath.Join(program.dir, "trainyard-kube")
}

// launch starts a controller as a process of its own, which ends with the test.
func (r *rig) launch(args ...string) *controlplane.Program {
	r.t.Helper()
	return r.launchAs("trainyard-kube", r.plane.Kubeconfig(), args...)
}

// launchAs is launch under a name of its log, with a kubeconfig.
func (r *rig) launchAs(name, kubeconfig string, args ...string) *controlplane.Program {
	r.t.Helper()
	args = append([]string{"--kubeconfig", kubeconfig}, args...)
	p, err := r.plane.Launch(name, build(r.t), args...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		p.Kill()
		if r.t.Failed() {
			r.t.Logf("%s: %s", name, tail(p.Log))
		}
	})
	return p
}

// tail returns the end of a log.
func tail(path string) string {
	const most = 8 << 10
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-most):])
}
