package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/procs"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// sh is the order to run a script as attempt 1 of job 0.
func sh(s State, script string) *Order {
	return &Order{State: s, Attempt: 1, Epoch: 1, Command: []string{"/bin/sh", "-c", script}, Dir: "/",
		Times: task.Times{Grace: patience}, Devices: []string{"slot-0"}}
}

// process is a shim that a test has started.
type process struct {
	*testing.T
	dir  RunDir
	cmd  *exec.Cmd
	said strings.Builder // whole once it is done
	done chan struct{}
}

// begin writes an order and starts a shim for it, which is stopped at the end of the test.
func begin(t *testing.T, o *Order) *process {
	t.Helper()
	if err := WriteOrder(o); err != nil {
		t.Fatal(err)
	}
	return spawn(t, o.State.RunDir(o.Job, o.Attempt))
}

// spawn starts a shim that inherits open files.
func spawn(t *testing.T, dir RunDir, open ...*os.File) *process {
	t.Helper()
	p := &process{T: t, dir: dir, cmd: exec.Command(os.Args[0], "shim", string(dir)), done: make(chan struct{})}
	p.cmd.Stderr, p.cmd.ExtraFiles = &p.said, open
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(p.end)
	return p
}

// end ends the attempt, also of a shim that does not listen yet, and waits for the shim to go.
func (p *process) end() {
	for {
		if conn, err := Dial(p.dir, 1<<40); err == nil {
			_ = conn.Stop()
			_ = conn.Watch(func(*Alive) {})
			_ = conn.Close()
		}
		select {
		case <-p.done:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// exit waits for the shim to go.
func (p *process) exit(want int) {
	p.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.Fatal("the shim goes on")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != want {
		p.Errorf("the shim exits with %d, want %d", code, want)
	}
}

// over waits for the shim to go and returns its record.
func (p *process) over() *Over {
	p.Helper()
	p.exit(0)
	over, err := p.dir.Over()
	if err != nil {
		p.Fatal(err)
	}
	return over
}

// dial connects to the shim once it listens.
func (p *process) dial(epoch int64) *Conn {
	p.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		conn, err := Dial(p.dir, epoch)
		if err == nil {
			p.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		if time.Now().After(deadline) {
			p.Fatal(err)
		}
	}
}

// Ensure that a shim runs its job wherever its folder is, says who it is, and obeys.
func TestLongPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 3 {
		dir = filepath.Join(dir, strings.Repeat("a long name ", 8))
	}
	o := sh(State(dir), "exec sleep 300")
	p := begin(t, o)
	conn := p.dial(1)
	up := false
	err := conn.Watch(func(a *Alive) {
		if up = true; a.PID != p.cmd.Process.Pid || !a.Lives() || !a.SameBoot() || a.Epoch != 1 {
			t.Errorf("%+v, want pid %d", a, p.cmd.Process.Pid)
		}
		if err := conn.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err != nil || !up {
		t.Errorf("%v, up %v", err, up)
	}
	if over := p.over(); over.Code != 128+15 || !over.Stopped || over.Killed || over.Ended.Before(over.Started) {
		t.Errorf("%+v, want death of SIGTERM", over)
	}
	if alive, err := p.dir.Alive(); err != nil || alive.Lives() {
		t.Errorf("%+v lives, %v", alive, err)
	}
}

// Ensure that a shim that must not run anything leaves no trace but its exit code.
func TestNotBegun(t *testing.T) {
	t.Parallel()
	s := State(t.TempDir())
	spawn(t, s.RunDir(9, 9)).exit(exitBroken)

	o := sh(s, "exit 0")
	if lock, err := s.Begin(0, 1); err != nil {
		t.Fatal(err)
	} else {
		_ = lock.Close()
	}
	begin(t, o).exit(exitBegun)

	o = sh(s, "exit 0")
	o.Attempt = 2
	lock, err := s.Begin(0, 1<<20) // a shim of the job lives
	if err != nil {
		t.Fatal(err)
	}
	begin(t, o).exit(exitBegun)
	_ = lock.Close()

	o = sh(s, "exit 0")
	o.Job = 1
	if err := s.SetEpoch(2); err != nil {
		t.Fatal(err)
	}
	begin(t, o).exit(exitFenced)
	if s.Begun(1, 1) {
		t.Error("an old manager's order was started")
	}
	if _, err := s.RunDir(1, 1).Over(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want no record", err)
	}
}

// Ensure that a folder that cannot be used is reported as that, not as an attempt that someone else has started.
func TestCannotBegin(t *testing.T) {
	t.Parallel()
	for file, says := range map[string]string{"jobs/0/lock": "is a directory", "epoch": "no regular file"} {
		s := State(t.TempDir())
		if err := os.MkdirAll(filepath.Join(string(s), file), 0o700); err != nil { // no file can be there
			t.Fatal(err)
		}
		p := begin(t, sh(s, "exit 0"))
		if p.exit(exitBroken); !strings.Contains(p.said.String(), says) {
			t.Errorf("%s: it says %q, want the cause", file, &p.said)
		}
	}
}

// Ensure that of many shims for one attempt one runs it, once.
func TestManyShims(t *testing.T) {
	t.Parallel()
	s := State(t.TempDir())
	o := sh(s, "echo ran; sleep 0.3; exit 4")
	if err := WriteOrder(o); err != nil {
		t.Fatal(err)
	}
	dir := s.RunDir(0, 1)
	var all []*process
	for range 8 {
		all = append(all, spawn(t, dir))
	}
	codes := make(map[int]int)
	for _, p := range all {
		<-p.done
		codes[p.cmd.ProcessState.ExitCode()]++
	}
	if codes[0] != 1 || codes[exitBegun] != 7 {
		t.Errorf("exit codes %v, want one 0 and seven %d", codes, exitBegun)
	}
	if out, err := os.ReadFile(dir.Output()); err != nil || string(out) != "ran\n" {
		t.Errorf("%q, %v, want one run", out, err)
	}
	if over, err := dir.Over(); err != nil || over.Code != 4 {
		t.Errorf("%+v, %v", over, err)
	}
}

// Ensure that a shim obeys the manager alone that the managers' file names, or a later one, whoever was there first.
func TestOldManagerIsRefused(t *testing.T) {
	t.Parallel()
	s := State(t.TempDir())
	p := begin(t, sh(s, "exec sleep 300"))
	first := p.dial(1)
	if err := s.SetEpoch(5); err != nil {
		t.Fatal(err)
	}
	second := p.dial(5)
	up := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- second.Watch(func(*Alive) { close(up) }) }()
	<-up
	_ = first.Stop() // if it was not refused before
	if err := first.Watch(func(*Alive) {}); !errors.Is(err, ErrFenced) {
		t.Errorf("%v, want ErrFenced", err)
	}
	if err := p.dial(4).Watch(func(*Alive) {}); !errors.Is(err, ErrFenced) {
		t.Errorf("epoch 4: %v, want ErrFenced", err)
	}
	if err := s.SetEpoch(6); err != nil { // a manager that the shim has heard nothing of yet
		t.Fatal(err)
	}
	if err := second.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, ErrFenced) {
		t.Errorf("epoch 5: %v, want ErrFenced", err)
	}
	third := p.dial(6)
	if err := errors.Join(third.Stop(), third.Stop(), third.Watch(func(*Alive) {})); err != nil {
		t.Error(err)
	}
	if over := p.over(); !over.Stopped {
		t.Errorf("%+v", over)
	}
}

// Ensure that what is no order does a shim no harm, and that a manager that hangs up ends nothing.
func TestGarbageOnTheSocket(t *testing.T) {
	t.Parallel()
	p := begin(t, sh(State(t.TempDir()), "exec sleep 300"))
	_ = p.dial(1).Close()
	for _, text := range []string{"", "\x00\xff", "{}\n", `{"epoch":"x"}`, `{"epoch":-1,"stop":true}`,
		`{"epoch":0,"stop":true}`, strings.Repeat("[", 2<<20), `{"stop":`} {
		address, folder, err := p.dir.socket()
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("unix", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, text) // it may have hung up
		_ = conn.Close()
		_ = folder.Close()
	}
	conn := p.dial(1)
	err := conn.Watch(func(*Alive) { _ = conn.Stop() })
	if over := p.over(); err != nil || !over.Stopped || over.Code != 128+15 {
		t.Errorf("%v, %+v", err, over)
	}
}

// Ensure that a job is given its own environment alone, also if it has none.
func TestNothingInherited(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{nil, {}, {"A=1", "A=2"}} {
		o := sh(State(t.TempDir()), "exec env")
		o.Env, o.Command = env, []string{"/usr/bin/env"}
		p := begin(t, o)
		if over := p.over(); over.Code != 0 {
			t.Fatalf("%+v", over)
		}
		want := o.Cookie() + "\n"
		if len(env) > 0 {
			want = "A=2\n" + want
		}
		if out, err := os.ReadFile(p.dir.Output()); err != nil || string(out) != want {
			t.Errorf("%v: %q, %v, want %q", env, out, err, want)
		}
	}
}

// Ensure that files that whoever started the shim had open are closed in the job.
func TestNoFilesInherited(t *testing.T) {
	t.Parallel()
	leak, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	o := sh(State(t.TempDir()), "")
	o.Command = []string{"/bin/ls", "/proc/self/fd"}
	if err := WriteOrder(o); err != nil {
		t.Fatal(err)
	}
	p := spawn(t, o.State.RunDir(0, 1), leak, leak, leak)
	if over := p.over(); over.Code != 0 {
		t.Fatalf("%+v", over)
	}
	if out, err := os.ReadFile(p.dir.Output()); err != nil || string(out) != "0\n1\n2\n3\n" { // 3 is what ls reads
		t.Errorf("open files %q, %v, want 0 to 3", out, err)
	}
}

// Ensure that a device that is held is named, and that the job and its devices are free once the end is written.
func TestDevices(t *testing.T) {
	t.Parallel()
	for i, c := range []struct{ ours, theirs, free bool }{{false, true, false}, {true, false, false},
		{true, true, true}} {
		s := State(t.TempDir())
		folder := filepath.Join(string(s), "devices")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		held := unheld(t, filepath.Join(folder, "b"), c.theirs)
		o := sh(s, "exit 0")
		o.Job, o.Devices, o.Shared = int32(i), []string{"a", "b", "c"}, c.ours
		over := begin(t, o).over()
		_ = held.Close()
		if c.free != (over.Failed == "") || !c.free && fmt.Sprint(over.Suspects) != "[b]" {
			t.Errorf("case %d: %+v, want free %v", i, over, c.free)
		}
		for _, name := range o.Devices {
			_ = unheld(t, filepath.Join(folder, name), false).Close()
		}
	}
}

// Ensure that a shortage of the machine is not the job's fault.
func TestNeverRan(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]Over{
		syscall.EAGAIN: {Failed: "x"}, syscall.ENOMEM: {Failed: "x"}, syscall.EMFILE: {Failed: "x"},
		syscall.ENOSPC: {Failed: "x"},
		syscall.ENOENT: {Code: 127}, exec.ErrNotFound: {Code: 127}, syscall.EACCES: {Code: 126},
		syscall.ENOEXEC: {Code: 126}, syscall.E2BIG: {Code: 126},
	} {
		got := neverRan(&Order{Command: []string{"x"}, Dir: "/"}, "/dev/null",
			&os.PathError{Op: "fork/exec", Path: "/x", Err: err})
		if got.Code != want.Code || (got.Failed == "") != (want.Failed == "") ||
			(got.Text == "") != (want.Failed != "") {
			t.Errorf("%v: %+v, want %+v", err, got, want)
		}
	}
}

// Ensure that a process that has taken the pid of a shim is not taken for it.
func TestLives(t *testing.T) {
	t.Parallel()
	me, err := self(1)
	if err != nil || !me.Lives() || !me.SameBoot() {
		t.Fatalf("%+v does not live, %v", me, err)
	}
	for _, change := range []func(a *Alive){
		func(a *Alive) { a.PID = 1 << 30 },
		func(a *Alive) { a.StartTime++ },
		func(a *Alive) { a.BootID = "another" },
	} {
		other := *me
		if change(&other); other.Lives() {
			t.Errorf("%+v lives", other)
		}
	}
}

// Ensure that the shim collects orphans while the job runs.
func TestReap(t *testing.T) {
	t.Parallel()
	p := begin(t, sh(State(t.TempDir()), `for i in 1 2 3 4 5; do (exec setsid true &) ; done; exec sleep 300`))
	conn := p.dial(1)
	err := conn.Watch(func(*Alive) {
		deadline := time.Now().Add(patience)
		for zombies(t, p.cmd.Process.Pid) > 0 && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * reapEvery) // whoever was born late is gone as well
		if n := zombies(t, p.cmd.Process.Pid); n > 0 {
			t.Errorf("%d zombies", n)
		}
		_ = conn.Stop()
	})
	if over := p.over(); err != nil || over.Code != 128+15 {
		t.Errorf("%v, %+v", err, over)
	}
}

// zombies counts the dead children of a process that it has not collected.
func zombies(t *testing.T, parent int) (n int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Error(err)
	}
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		if strings.HasPrefix(rest, fmt.Sprintf("Z %d ", parent)) {
			n++
		}
	}
	return n
}

// Ensure that the end of a group in a cgroup leaves no cgroup behind.
func TestCgroupRemoved(t *testing.T) {
	t.Parallel()
	o := sh(State(t.TempDir()), "(setsid sleep 300 &); exit 0")
	o.Cgroup = procs.Root()
	if over := begin(t, o).over(); over.Code != 0 || over.Failed != "" {
		t.Errorf("%+v", over)
	}
	if o.Cgroup != "" {
		if _, err := os.Stat(filepath.Join(o.Cgroup, o.GroupName())); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v: the cgroup is left", err)
		}
	}
}

// Ensure that records keep their form: older shims live on next to newer managers.
func TestRecordForm(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, x := range map[string]any{
		`{"code":1,"stopped":true,"killed":false,"grace":1000000000,` +
			`"started":"2026-01-02T03:04:05Z","ended":"2026-01-02T03:04:05Z"}`: Over{Code: 1, Stopped: true,
			Grace: time.Second, Started: at, Ended: at},
		`{"pid":1,"start_time":2,"boot_id":"b","epoch":3,"at":"2026-01-02T03:04:05Z"}`: Alive{1, 2, "b", 3, at, 0},
		`{"epoch":4,"stop":true}`: say{Epoch: 4, Stop: true},
		`{"over":true}`:           report{Over: true},
	} {
		if b, err := json.Marshal(x); err != nil || string(b) != want {
			t.Errorf("%s, %v, want %s", b, err, want)
		}
	}
}
