//go:build !invariants

package python

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/testsize"
)

var launched = testsize.Flag("torchruns", 4, 20, "trainings that plain torchrun starts at once")

// Ensure that jobs at once, each plain torchrun with two ranks and none with a port, meet their own ranks, all of them
// while others hold random ports of the range.
func TestPlainTorchrunsMeetTheirOwn(t *testing.T) {
	t.Parallel()
	n, folder := launched.N(), t.TempDir()
	met := filepath.Join(folder, "met")
	script, err := filepath.Abs("tests/meet.py")
	if err = errors.Join(err, os.Mkdir(met, 0o700)); err != nil {
		t.Fatal(err)
	}
	const first, last = 18000, 18999
	hold(t, first, last, 100)
	y := serves(t, folder, "--slots", strconv.Itoa(2*n), "--ports", "18000-18999")
	for range n {
		y.command("submit", "--patience", "2m", "--gpus", "2", "--no-env", "--env", "OMP_NUM_THREADS=1", "--dir",
			folder, "--", "/usr/bin/torchrun", "--nproc_per_node=2",
			"--redirects=9:0", "--tee=9:0", // which 1.13 needs on Python 3.11
			script, met, strconv.Itoa(n))
	}
	for job := range n {
		wait := exec.CommandContext(t.Context(), y.binary, "wait", "--state", y.state, strconv.Itoa(job))
		if out, failed := wait.CombinedOutput(); failed != nil {
			logs, _ := exec.CommandContext(t.Context(), y.binary, "logs", "--state", y.state,
				strconv.Itoa(job)).CombinedOutput()
			t.Errorf("job %d: %v\n%s\n%s", job, failed, out, logs)
		}
	}
	list, err := os.ReadDir(met)
	if err != nil || len(list) != 2*n {
		t.Fatalf("%d ranks met, want %d: %v", len(list), 2*n, err)
	}
	owner := make(map[string]string) // of ports
	for _, entry := range list {
		word := strings.Split(entry.Name(), "-")
		if was, taken := owner[word[2]]; taken && was != word[0] {
			t.Errorf("jobs %s and %s have port %s at once", was, word[0], word[2])
		}
		owner[word[2]] = word[0]
	}
}

// hold listens at random ports of a range, as others on the machine may.
func hold(t *testing.T, first, last, n int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(first+rand.IntN(last-first)))
		if err == nil { // else it is held already
			t.Cleanup(func() { _ = l.Close() })
		}
	}
}
