//go:build !invariants

package python

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var requeues = flag.Int("requeues", 3, "how often the trainings are stopped")

// built is the folder of the binary, once it is built.
var built string

// builds builds the binary and returns its path.
var builds = sync.OnceValues(func() (path string, err error) {
	if built, err = os.MkdirTemp("", "trainyard-python"); err != nil {
		return "", err
	}
	path = filepath.Join(built, "trainyard")
	out, err := exec.Command("go", "build", "-o", path, "../cmd/trainyard").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// TestMain removes what tests have built.
func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// yard is a manager, and how often a training was stopped in it.
type yard struct {
	t             *testing.T
	binary, state string
}

// command runs a verb and returns what it wrote.
func (y *yard) command(args ...string) string {
	y.t.Helper()
	cmd := exec.CommandContext(y.t.Context(), y.binary, args...)
	cmd.Env = append(cmd.Environ(), "TRAINYARD_STATE="+y.state)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		y.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// serves starts a manager with these flags, whose state is in folder, until the test ends.
func serves(t *testing.T, folder string, flags ...string) *yard {
	t.Helper()
	binary, err := builds()
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{t, binary, filepath.Join(folder, "state")}
	serve := exec.Command(binary, append([]string{"serve", "--state", y.state}, flags...)...)
	var said bytes.Buffer
	serve.Stdout, serve.Stderr = &said, &said
	if err = serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if failed := errors.Join(serve.Process.Signal(os.Interrupt), serve.Wait()); failed != nil {
			t.Errorf("serve: %v\n%s", failed, said.String())
		}
	})
	return y
}

// train trains by so many ranks for so many steps, stopped so often, and returns the lines of each rank.
func train(t *testing.T, ranks, steps, stops int) (lines [][]string) {
	t.Helper()
	folder := t.TempDir()
	y := serves(t, folder, "--slots", strconv.Itoa(ranks))
	source, err := filepath.Abs("src")
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("tests/train.py")
	if err != nil {
		t.Fatal(err)
	}
	y.command("submit", "--patience", "2m", "--gpus", strconv.Itoa(ranks), "--grace", "5m", "--no-env", "--env",
		"PYTHONPATH="+source, "--env", "OMP_NUM_THREADS=1", "--env", "PYTHONDONTWRITEBYTECODE=1", "--dir", folder, "--",
		interpreter, "-m", "torch.distributed.run", "--nproc_per_node="+strconv.Itoa(ranks), "--max_restarts=0",
		"--monitor_interval=0.2", "--redirects=9:0", "--tee=9:0", script, folder, strconv.Itoa(steps))
	for stop := range stops {
		done := func() int { return len(linesOf(t, folder, 0)) }
		at, until := done(), time.Now().Add(5*time.Minute)
		for done() < at+2+3*stop%7 {
			if time.Now().After(until) {
				t.Fatalf("stop %d: no new steps\n%s", stop, y.command("logs", "0"))
			}
			time.Sleep(50 * time.Millisecond)
		}
		y.command("requeue", "0")
	}
	y.command("wait", "0")
	for rank := range ranks {
		lines = append(lines, linesOf(t, folder, rank))
	}
	return lines
}

// linesOf returns what a rank has written of its steps so far.
func linesOf(t *testing.T, folder string, rank int) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("rank-%d", rank)))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(text)))
}

var attempt = regexp.MustCompile(`^(\d+) (\d+) (\S+) (.*)\n$`)

// Ensure that trainings by two and three ranks, each with workers, that are stopped again and again by requeue, lose no
// step, that all ranks stop at the same one, that losses are those of a training left alone, and that each sample is
// seen once in an epoch.
func TestStoppedTrainingsAreAsLeftAlone(t *testing.T) {
	if missing := lacking(); missing != "" {
		t.Skip(missing)
	}
	steps := 40 + 12**requeues
	for ranks := 2; ranks <= 3; ranks++ {
		t.Run(strconv.Itoa(ranks), func(t *testing.T) {
			t.Parallel()
			alone, stopped := train(t, ranks, steps, 0), train(t, ranks, steps, *requeues)
			ends := make([]map[string]string, ranks)
			for rank := range ranks {
				if got, want := len(stopped[rank]), steps; got != want {
					t.Fatalf("rank %d: %d steps, want %d: none lost, none twice", rank, got, want)
				}
				ends[rank] = make(map[string]string)
				for n, line := range stopped[rank] {
					got, want := attempt.FindStringSubmatch(line), attempt.FindStringSubmatch(alone[rank][n])
					if got == nil || want == nil || !slices.Equal(got[2:], want[2:]) {
						t.Fatalf("rank %d, step %d: %q, left alone %q", rank, n, line, alone[rank][n])
					}
					ends[rank][got[1]] = got[2]
				}
				if !maps.Equal(ends[rank], ends[0]) {
					t.Errorf("rank %d stopped at %v, rank 0 at %v", rank, ends[rank], ends[0])
				}
			}
			if got := len(ends[0]); got != *requeues+1 {
				t.Errorf("%d attempts did steps, want %d", got, *requeues+1)
			}
			onceAnEpoch(t, stopped)
		})
	}
}

// onceAnEpoch checks that each of 101 samples was seen once in each whole epoch.
func onceAnEpoch(t *testing.T, ranks [][]string) {
	t.Helper()
	const size, stepsOfEpoch = 101, 11
	for epoch := range len(ranks[0]) / stepsOfEpoch {
		seen := make(map[string]int)
		for _, lines := range ranks {
			for _, line := range lines[epoch*stepsOfEpoch : (epoch+1)*stepsOfEpoch] {
				for _, sample := range strings.Fields(attempt.FindStringSubmatch(line)[4]) {
					seen[sample]++
				}
			}
		}
		// The last batch of an epoch is one sample: each of the other ranks gets one of the first once more.
		twice := 0
		for _, n := range seen {
			twice += n - 1
		}
		if len(seen) != size || twice != len(ranks)-1 {
			t.Errorf("epoch %d: %d samples, %d of them once more, want %d and %d", epoch, len(seen), twice, size,
				len(ranks)-1)
		}
	}
}
