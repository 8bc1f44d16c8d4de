package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// state is what became of a fault.
type state int

const (
	killed   state = iota // its test failed
	survived              // its test passed
	unfit                 // it does not fit the source, or does not compile
)

// String names the state.
func (s state) String() string { return [...]string{"found", "NOT FOUND", "UNFIT"}[s] }

// result is what became of a fault, and in which time.
type result struct {
	mutant
	state state
	note  string
	took  time.Duration
}

const (
	// mostTest is how long a test may take with its fault: one that hangs has found it.
	mostTest = time.Minute
	// mostBuild is how long go may take in all.
	mostBuild = 5 * time.Minute
)

// subreaper is PR_SET_CHILD_SUBREAPER of prctl(2).
const subreaper = 36

// runAll runs faults as long as time is left.
func runAll(ctx context.Context, list []mutant, budget time.Duration) (results []result, err error) {
	// What tests leave behind when they end in the middle becomes our child.
	if _, _, bad := syscall.RawSyscall(syscall.SYS_PRCTL, subreaper, 1, 0); bad != 0 {
		return nil, fmt.Errorf("prctl: %w", bad)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	for i := range list {
		if ctx.Err() != nil || time.Since(began) > budget {
			break
		}
		r := result{mutant: list[i]}
		start := time.Now()
		r.state, r.note = r.plant(ctx, root, dir)
		r.took = time.Since(start)
		sweep()
		if ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "%-9s %s: %s\n", r.state, r.promise, r.name)
			results = append(results, r)
		}
	}
	return results, context.Cause(ctx)
}

// plant runs the test with the fault. Programs that the test builds have it, too.
func (m *mutant) plant(ctx context.Context, root, dir string) (state, string) {
	text, err := m.mutated(root)
	if err != nil {
		return unfit, err.Error()
	}
	file, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	b, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.file): file}})
	err = errors.Join(err, os.WriteFile(file, []byte(text), 0o600), os.WriteFile(overlay, b, 0o600))
	if err != nil {
		return unfit, err.Error()
	}
	ctx, stop := context.WithTimeout(ctx, mostBuild)
	defer stop()
	module, pkg := "", m.pkg
	if within, ok := strings.CutPrefix(pkg, "./kube/"); ok { // a module of its own
		module, pkg = filepath.Join(root, "kube"), "./"+within
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-vet=off", "-timeout", mostTest.String(), "-run",
		"^("+m.test+")$", pkg)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	return judge(out, err)
}

// judge says what the output of a test and its error mean.
func judge(out []byte, err error) (state, string) {
	switch {
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")) ||
		bytes.Contains(out, []byte("go build")):
		return unfit, "it does not compile: " + firstLine(out)
	case bytes.Contains(out, []byte("no tests to run")):
		return unfit, "there is no such test"
	case err == nil:
		return survived, ""
	case bytes.Contains(out, []byte("panic: test timed out")):
		return killed, "by its time limit"
	}
	return killed, ""
}

// firstLine returns the first line that is not about a package.
func firstLine(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "#") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// sweep ends the processes that a test left behind: they are our children now.
func sweep() {
	for range 100 {
		list := children()
		for _, pid := range list {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
				break
			}
		}
		if len(list) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// children returns the children of all threads of this process.
func children() (pids []int) {
	all, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is sound
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for word := range strings.FieldsSeq(string(b)) {
			if pid, bad := strconv.Atoi(word); bad == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
