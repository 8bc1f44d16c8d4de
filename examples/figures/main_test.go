package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Ensure that the figures of a manager that runs are shown, and that what it refuses is an error.
func TestFiguresOfAManager(t *testing.T) {
	program := filepath.Join(t.TempDir(), "trainyard")
	build := exec.Command("go", "build", "-o", program, "../../cmd/trainyard")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	a := asked{state: filepath.Join(t.TempDir(), "state"), job: "0", systems: "fifo",
		history: filepath.Join(t.TempDir(), "history.json")}
	serve := exec.Command(program, "serve", "--slots", "2", "--state", a.state)
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = serve.Process.Signal(os.Interrupt); _ = serve.Wait() }()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := exec.Command(program, "submit", "--state", a.state, "--", "true").Run()
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(program, "wait", "--state", a.state, "0").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var text strings.Builder
	if err := a.show(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"GPU-hours, 100%", "useful: ", " held, ", "attempt 1: ",
		`"schema":"trainyard.whatif/v1"`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	if saved, err := os.ReadFile(a.history); err != nil || !strings.Contains(string(saved), "trainyard.report/v1") {
		t.Errorf("%.200s, %v", saved, err)
	}
	a.remedy = "gpus:1"
	if err := a.show(t.Context(), &text); err == nil || !strings.Contains(err.Error(), "no longer helps") {
		t.Errorf("a remedy of a job that is done: %v", err)
	}
}
