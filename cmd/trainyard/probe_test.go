package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
)

// gpus are made-up GPUs with locks in a folder of the test.
type gpus struct {
	device.Slots
	locks string
	users []device.Process // of slot-1
}

func (g gpus) Locks() string { return g.locks }

func (g gpus) Sample(context.Context) (*device.Sample, error) {
	return &device.Sample{Readings: map[string]device.Reading{"slot-1": {Listed: true, Processes: g.users}}}, nil
}

// Ensure that a GPU that a job holds, or that somebody computes on, is not measured, and that one is free again afterwards.
func TestHold(t *testing.T) {
	g := gpus{Slots: 2, locks: filepath.Join(t.TempDir(), "locks")}
	list, _ := g.List(t.Context())
	release, err := hold(t.Context(), g, list)
	if err != nil {
		t.Fatal(err)
	}
	const held = "slot-0 is held by a job or another probe, want it idle"
	if _, err = hold(t.Context(), g, list); err == nil || err.Error() != held || exitCode(err) != exitConflict {
		t.Errorf("%v, want %s", err, held)
	}
	release()
	g.users = []device.Process{{PID: 77}}
	const used = "slot-1 is in use by process 77, want it idle: what is measured beside others is not the GPU"
	if _, err = hold(t.Context(), g, list); err == nil || err.Error() != used || exitCode(err) != exitConflict {
		t.Errorf("%v, want %s", err, used)
	}
	g.users = nil
	if release, err = hold(t.Context(), g, list); err != nil {
		t.Errorf("%v, want it free again", err)
	}
	release()
}

// Ensure that an interrupted probe ends with its code and leaves no file.
func TestProbeInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	began := filepath.Join(t.TempDir(), "began")
	go func() {
		for _, err := os.Stat(began); err != nil; _, err = os.Stat(began) {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"probe", "--slots", "2", "--class", "A=touch " + began + "; sleep 600", "--quiet",
		"--out", filepath.Join(dir, "scores.csv"), "--raw", filepath.Join(dir, "raw.csv")}, &stdout, &stderr)
	if code != exitInterrupted || stdout.Len() > 0 || !strings.Contains(stderr.String(), "interrupted; no file was written") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
