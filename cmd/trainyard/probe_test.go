package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cli/term"
)

// Ensure that an interrupted probe ends with its code and leaves no file.
func TestProbeInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	began := filepath.Join(t.TempDir(), "started")
	go func() {
		for _, err := os.Stat(began); err != nil; _, err = os.Stat(began) {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"probe", "--slots", "2", "--class", "A=touch " + began + "; sleep 600", "--quiet",
		"--out", filepath.Join(dir, "scores.csv"), "--raw", filepath.Join(dir, "raw.csv")}, &stdout, &stderr)
	if code != term.ExitInterrupted || stdout.Len() > 0 ||
		!strings.Contains(stderr.String(), "interrupted; no file was written") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
