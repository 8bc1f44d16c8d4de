//go:build !invariants

package pytorch

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/manager/jobfile"
)

// script runs a Python program of this folder and returns what it writes to stdout.
func script(t *testing.T, args ...string) []byte {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), python, args...)
	cmd.Env = append(cmd.Environ(), "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", strings.Join(args, " "), err, out, stderr.String())
	}
	t.Log(stderr.String())
	return out
}

// Ensure that the parts pass their own tests: checkpoints whole after a crash at any call, the order of samples free of
// batches and ranks, the statistics of a known gradient, accumulation.
func TestParts(t *testing.T) {
	needTorch(t)
	t.Parallel()
	script(t, "-m", "unittest", "-v", "parts_test")
}

// Ensure that resizing costs no accuracy: with other numbers of ranks and batch sizes in four of five parts of a run,
// the 95 % interval of the difference to runs left alone, over five seeds, lies within 0.02. The last batch of a run
// left alone is one sample, for two ranks.
func TestElasticAccuracy(t *testing.T) {
	needTorch(t)
	t.Parallel()
	var r struct {
		Seeds []struct {
			Alone, Resized float64
		}
		Difference float64
		HalfWidth  float64 `json:"half_width"`
	}
	if err := json.Unmarshal(script(t, "accuracy.py", "--seeds", "5", "--epochs", "9", "--dataset", "2105"),
		&r); err != nil {
		t.Fatal(err)
	}
	t.Logf("difference %.4f +- %.4f: %+v", r.Difference, r.HalfWidth, r.Seeds)
	for _, s := range r.Seeds {
		if s.Alone < 0.85 {
			t.Errorf("accuracy %v of a run left alone: it has not learnt", s.Alone)
		}
	}
	if len(r.Seeds) != 5 || math.Abs(r.Difference)+r.HalfWidth > 0.02 {
		t.Errorf("difference %v +- %v over %d seeds, want within 0.02 over 5", r.Difference, r.HalfWidth, len(r.Seeds))
	}
}

// Ensure that jobs.yaml can be read, and that what it runs is there.
func TestJobs(t *testing.T) {
	jobs, err := jobfile.Read("jobs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs.Jobs {
		program := filepath.Join(j.Task.Dir, j.Task.Command[0])
		if info, err := os.Stat(program); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s runs %s: %v, want a program", j.Spec.Name, program, err)
		}
	}
}
