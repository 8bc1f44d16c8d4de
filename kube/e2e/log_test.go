package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// Ensure that the log of a controller that starts again for two other policies, is killed and comes back has every
// decision: `trainyard replay` decides each of them again.
func TestLogReplays(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, fakenode.Options{GPUs: 2, Run: fakenode.Script(0, 100*time.Millisecond, 0)},
		v1alpha1.SchedulerPolicySpec{System: "fifo"})
	log := filepath.Join(t.TempDir(), "log.jsonl")
	p := r.launch("--log", log)
	r.create(r.job("first", 3))
	r.until("first", v1alpha1.Running)
	r.setPolicy(`{system: srtf}`)
	eventually(t, "srtf decides", func() bool { return r.policy().Status.System[:4] == "srtf" })
	r.create(r.job("second", 1))
	r.until("second", v1alpha1.Running)
	r.setPolicy(`{system: tiresias-las}`)
	eventually(t, "tiresias-las decides", func() bool { return r.policy().Status.System[:8] == "tiresias" })
	r.create(r.job("third", 4))
	r.until("third", v1alpha1.Pending)
	p.Kill()
	r.remove("first") // while no one leads: the next leader never hears of them, and has their GPUs for others
	r.remove("second")
	r.launch("--log", log)
	r.until("third", v1alpha1.Running)
	version := r.policy().Status.Version // what is durable is in the log
	var doc struct {
		Parts []struct {
			System string
			Events int64
		}
	}
	must(t, json.Unmarshal(trainyard(t, "replay", "--json", log), &doc))
	var events int64
	var systems []string
	for _, part := range doc.Parts {
		events += part.Events
		if n := len(systems); n == 0 || systems[n-1] != part.System {
			systems = append(systems, part.System)
		}
	}
	if events < version || len(systems) != 3 || len(doc.Parts) < 4 {
		t.Errorf("%d of %d events are decided again, in parts %+v", events, version, doc.Parts)
	}
}

// trainyard runs the command of the root module, and returns what it writes.
func trainyard(t testing.TB, args ...string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trainyard")
	build := exec.Command("go", "build", "-o", path, "./cmd/trainyard")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(path, args...)
	run.Stderr = os.Stderr
	out, err := run.Output()
	if err != nil {
		t.Fatalf("trainyard %v: %v\n%s", args, err, out)
	}
	return out
}
