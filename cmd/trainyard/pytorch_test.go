//go:build !invariants

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
)

// torchJobs are a training on two of three slots, a job that ends once that has reported its fifth step, and one on all
// slots that comes then and preempts it: however slow the machine is, the training has started.
const torchJobs = `defaults: {grace: 2m, preemptible: true}
jobs:
  - name: train
    command: [%[1]s/run.sh, --epochs, "2", --dataset, "1024", --batch, "32", --report-every, "1", --step-time, "0.2",
      --workers, "2"]
    checkpoint: {ready_file: .ckpt-done}
    gpus: 2
  - name: gate
    command: [sh, -c, 'until grep -q "step=5 " %[2]s/jobs/0/1/output.log; do sleep 0.1; done']
  - {name: wide, command: ["true"], gpus: 3, after: [gate]}
`

var (
	firstStep = regexp.MustCompile(`(?m)^TRAINYARD step=(\d+) `)
	preempted = regexp.MustCompile(`(?m)^TRAINYARD preempted step=(\d+)$`)
)

// Ensure that a PyTorch training under torchrun, which hides the exit codes of its ranks, is preempted, leaves a ready
// file, and goes on at the very step, though each rank has two workers that a signal would end.
func TestTorchrunIsPreempted(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("/usr/bin/python3", "-c", "import torch").CombinedOutput(); err != nil {
		t.Skipf("no PyTorch: apt-get install --no-install-recommends python3-torch (%v)\n%s", err, out)
	}
	example, err := filepath.Abs("../../examples/pytorch")
	if err != nil {
		t.Fatal(err)
	}
	path := jobFile(t, nil)
	state := strings.TrimSuffix(path, ".yaml") + ".state"
	if err := os.WriteFile(path, fmt.Appendf(nil, torchJobs, example, state), 0o600); err != nil {
		t.Fatal(err)
	}
	document, said := trainyard(t, term.ExitOK, "run", path, "--slots", "3", "--set", "*.min_run=0", "--set",
		"*.thresholds=0.1", "--json")
	var doc ran
	if err := json.Unmarshal([]byte(document), &doc); err != nil {
		t.Fatal(err)
	}
	if j := doc.Jobs[0]; j.Status != "finished" || j.Attempts != 2 ||
		!strings.Contains(said, "train: attempt 1 ended: preempted with exit code 1") {
		t.Fatalf("%s after %d attempts, want finished after 2, the first preempted with exit code 1\n%s", j.Status,
			j.Attempts, said)
	}
	run := func(attempt int) string { return filepath.Join(state, "jobs", "0", strconv.Itoa(attempt)) }
	var outputs [3]string
	for n := 1; n <= 2; n++ {
		text, err := os.ReadFile(filepath.Join(run(n), "output.log"))
		if err != nil {
			t.Fatal(err)
		}
		outputs[n] = string(text)
	}
	stopped, resumed := preempted.FindStringSubmatch(outputs[1]), firstStep.FindStringSubmatch(outputs[2])
	if stopped == nil || resumed == nil || stopped[1] != resumed[1] ||
		!strings.Contains(outputs[2], "TRAINYARD done steps=64 ") {
		t.Fatalf("stopped with %q, resumed with %q, want the same step, and in the end 64\n%s\n%s", stopped, resumed,
			outputs[1], outputs[2])
	}
	if ready, err := os.ReadFile(filepath.Join(run(1), ".ckpt-done")); err != nil ||
		!strings.Contains(string(ready), `"step": `+stopped[1]+",") {
		t.Errorf("ready file %q, %v, want one with step %s", ready, err, stopped[1])
	}
}
