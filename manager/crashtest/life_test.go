package crashtest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/failpoint"
)

// life is one process of `trainyard run` or `trainyard serve`.
type life struct {
	t      testing.TB
	cmd    *exec.Cmd
	began  time.Time
	stdout bytes.Buffer
	stderr strings.Builder // whole once heard is closed
	heard  chan struct{}   // closed when stderr has ended
	over   chan struct{}   // closed when the process has ended
	killed bool            // by us
}

// begin starts a life that runs the jobs of dir on four slots. Each line it says is passed to line.
func begin(t *testing.T, dir, armed string, line func(string), more ...string) *life {
	t.Helper()
	args := []string{"run", "jobs.yaml", "--state", "state", "--slots", "4", "--set", "*.min_run=0", "--set",
		"*.thresholds=0.4"}
	return live(t, dir, armed, line, append(args, more...)...)
}

// live starts a life in folder dir, armed with a failpoint if that is not "". Each line it says is passed to line, from
// a goroutine of its own.
func live(t testing.TB, dir, armed string, line func(string), args ...string) *life {
	t.Helper()
	l := &life{t: t, cmd: exec.Command(trainyard, args...), began: time.Now(), heard: make(chan struct{}),
		over: make(chan struct{})}
	l.cmd.Dir, l.cmd.Stdout = dir, &l.stdout
	l.cmd.Env = append(os.Environ(), failpoint.Variable+"="+armed)
	out, err := l.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go l.listen(out, line)
	go func() {
		<-l.heard
		_ = l.cmd.Wait() // its state says how it ended
		close(l.over)
	}()
	t.Cleanup(l.kill)
	return l
}

func (l *life) listen(out io.Reader, line func(string)) {
	defer close(l.heard)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		l.stderr.WriteString(lines.Text() + "\n")
		if line != nil {
			line(lines.Text())
		}
	}
}

// within waits for the end, for so long at most, and reports whether it came.
func (l *life) within(d time.Duration) bool {
	select {
	case <-l.over:
		return true
	case <-time.After(d):
		return false
	}
}

// kill ends the life with SIGKILL, unless it has ended.
func (l *life) kill() {
	select {
	case <-l.over:
	default:
		l.killed = true
		l.signal(syscall.SIGKILL)
		<-l.over
	}
}

func (l *life) signal(s syscall.Signal) {
	if err := l.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		l.t.Error(err)
	}
}

// shot reports whether the life, which is over, was ended by SIGKILL.
func (l *life) shot() bool {
	status, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// command runs another verb of the program in dir and returns its exit code and what it said.
func command(t testing.TB, dir string, args ...string) (code int, said string) {
	t.Helper()
	cmd := exec.Command(trainyard, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Error(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}
