package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ensure that real jobs of a model whose speeds are given get the width and the batch size that these say, and that
// without them the system which needs them says so.
func TestRunWithProfiles(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() {
		if err := endJobs(dir); err != nil {
			t.Error(err)
		}
	})
	table, jobs := filepath.Join(dir, "net.csv"), filepath.Join(dir, "jobs.yaml")
	for path, text := range map[string]string{
		table: "global_batch_size,1,2,4\n64,4,7,11\n128,2.2,4.2,8\n",
		jobs: `jobs: [{name: a, model: net, preemptible: true, gpus: {min: 1, max: 4, default: 1}, batch: {global_min: 64, global_max: 128},
  command: [sh, -c, 'echo batch $TRAINYARD_BATCH_GLOBAL on $TRAINYARD_NUM_GPUS']}]`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := []string{"run", jobs, "--slots", "4", "--system", "elastic", "--set", "elastic.curves=oracle"}
	if _, said := trainyard(t, 2, run...); !strings.Contains(said, "--profiles") {
		t.Errorf("without profiles: %s", said)
	}
	trainyard(t, 0, append(run, "--profiles", table)...)
	out, err := os.ReadFile(filepath.Join(dir, "jobs.state", "jobs", "0", "1", "output.log"))
	if err != nil || string(out) != "batch 128 on 4\n" {
		t.Errorf("%q, %v, want a batch of 128 on 4 slots", out, err)
	}
}
