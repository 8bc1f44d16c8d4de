package simulate

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/trace"
)

// polluxSimulation is workload-6 on 16 nodes of 4 GPUs, with the profiles of its applications.
func polluxSimulation(t *testing.T, system string) *Request {
	t.Helper()
	dir := filepath.Join(shareddata.DataDir(t), "pollux", "osdi21")
	profiles, err := speedup.ReadProfiles(os.DirFS(filepath.Join(dir, "traces")), "")
	if err != nil {
		t.Fatal(err)
	}
	s := &Request{System: system, Preset: "pollux", Apps: make(map[string]speedup.App), Settings: map[string]string{}}
	for _, p := range profiles {
		s.Apps[p.Name] = p
	}
	if s.Trace, err = trace.Read(filepath.Join(dir, "workloads", "workload-6.csv"), trace.Options{}); err != nil {
		t.Fatal(err)
	}
	if s.Cluster, err = cluster.Load("16x4"); err != nil {
		t.Fatal(err)
	}
	return s
}

// Ensure that the preset has the published means of workload-6: Tiresias exactly, Optimus within a hundredth.
// Reference: specification of BOA, 5.4.
func TestPolluxPreset(t *testing.T) {
	for system, want := range map[string]float64{"tiresias-las": 3469.69375, "optimus": 5301.875} {
		out, err := polluxSimulation(t, system).Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if out.Finished != 160 || system != "optimus" && out.AvgJCT != want || math.Abs(out.AvgJCT/want-1) > 0.01 {
			t.Errorf("%s: %d jobs, %v s, want 160 in %v", system, out.Finished, out.AvgJCT, want)
		}
	}
}

// Ensure that the systems of our own come out in the published order on the same jobs: Pollux before Optimus, and
// elastic scaling between them. Speeds are known, restarts cost 30 s.
func TestResizingOrder(t *testing.T) {
	jct := make(map[string]float64)
	for _, system := range []string{"optimus", "elastic", "pollux"} {
		s := polluxSimulation(t, system)
		s.Preset = ""
		s.Settings = map[string]string{"curves": "oracle", "restart_overhead": "30"}
		out, err := s.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if jct[system] = out.AvgJCT; out.Finished != 160 {
			t.Errorf("%s: %d of 160 finished", system, out.Finished)
		}
	}
	if !(jct["pollux"] < jct["elastic"] && jct["elastic"] < jct["optimus"]) {
		t.Errorf("%v, want pollux before elastic before optimus", jct)
	}
}

// Ensure that the preset refuses what the released simulator knows nothing of.
func TestPolluxPresetHonours(t *testing.T) {
	for _, c := range []struct{ key, value, want string }{
		{"restart_overhead", "62", "restart_overhead=62, want 30"},
		{"curves", "oracle", "curves=oracle, want it left out"},
		{"start_delay", "1", "start_delay=1, want 0"},
	} {
		s := polluxSimulation(t, "optimus")
		s.Settings[c.key] = c.value
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), "preset: pollux: "+c.want) {
			t.Errorf("%s=%s: %v, want %s", c.key, c.value, err, c.want)
		}
	}
	s := polluxSimulation(t, "tiresias-las")
	s.Apps = nil
	if err := s.Check(); err == nil || !strings.Contains(err.Error(),
		`application "cifar10", want one that --profiles has`) {
		t.Errorf("without profiles: %v", err)
	}
}
