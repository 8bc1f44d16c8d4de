package main

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cli/term"
)

// TestInterrupted checks that an interrupted run says so, ends with its code and leaves no file.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"simulate", "--trace", exampleTrace, "--cluster", "15x4", "--system", "fifo,las",
		"--jobs-out", filepath.Join(dir, "jobs.csv"), "--events-out", filepath.Join(dir, "log.jsonl")}, &stdout,
		&stderr)
	if code != term.ExitInterrupted {
		t.Errorf("exit code %d, want %d", code, term.ExitInterrupted)
	}
	if stdout.Len() > 0 || stderr.String() != "trainyard: interrupted; no file was written\n" {
		t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestHangup checks that a terminal that closes cancels a run as an interrupt does, and that another signal of the kind
// does not cut its cleaning up short.
func TestHangup(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals to send")
	}
	heard := make(chan os.Signal, 2)
	signal.Notify(heard, syscall.SIGHUP) // else it stays ignored where whoever started the tests ignores it
	defer signal.Stop(heard)
	ctx, stop := term.Interruptible()
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := self.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Fatal("SIGHUP did not cancel the context")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
