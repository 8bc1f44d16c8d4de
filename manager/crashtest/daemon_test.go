package crashtest

import (
	"fmt"
	"io"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local/shim"
)

// adoptKills is how often the daemon of sixteen running jobs is killed.
const adoptKills = 12

// Promise 3: sixteen jobs run on through the deaths of their daemons, in the same processes and on the same slots, and
// each ends with its own exit code and all of its output, whether a daemon was there or not.
func TestPromise03RunningJobsSurviveTheDaemon(t *testing.T) {
	const jobs, lines = 16, 20
	d := newDaemons(t, jobs)
	l := d.up()
	var file strings.Builder
	file.WriteString("jobs:\n")
	for i := range jobs { // each runs for 2 to 6 s once all are up, and says where and to what end
		fmt.Fprintf(&file, "  - {name: j%d, command: [sh, -c, 'echo on $TRAINYARD_DEVICES; until [ -e go ]; do sleep "+
			"0.1; done; for i in $(seq %d); do echo line $i; sleep %.2f; done; exit %d']}\n",
			i, lines, 0.1+0.013*float64(i), i)
	}
	d.submit(file.String())
	for i := range jobs {
		d.until(fmt.Sprintf("j%d", i), "running")
	}
	first, all := make([]shim.Alive, jobs), []api.Job{}
	for i := range jobs {
		alive, err := d.state.RunDir(int32(i), 1).Alive()
		if err != nil {
			t.Fatal(err)
		}
		first[i] = *alive
		all = append(all, d.job(fmt.Sprint(i)))
	}
	d.let("go")
	var took []time.Duration
	for n := range adoptKills {
		l.signal(syscall.SIGKILL)
		if !l.within(patience) {
			t.Fatal("it does not die")
		}
		time.Sleep(time.Duration(n%4) * 150 * time.Millisecond) // some end meanwhile
		began := time.Now()
		l = d.up()
		took = append(took, time.Since(began))
	}
	for i := range jobs {
		j := d.until(fmt.Sprintf("j%d", i), "done")
		if j.ExitCode != i || j.Attempt != 1 || (j.Outcome == "finished") != (i == 0) {
			t.Errorf("%+v, want one attempt with exit code %d", j, i)
		}
		if alive, err := d.state.RunDir(int32(i), 1).Alive(); err != nil || *alive != first[i] {
			t.Errorf("job %d: run by %+v, later by %+v, %v", i, first[i], alive, err)
		}
		want := "on " + strings.Join(all[i].GPUs, ",") + "\n"
		for n := range lines {
			want += fmt.Sprintf("line %d\n", n+1)
		}
		if b, err := os.ReadFile(d.state.RunDir(int32(i), 1).Output()); err != nil || string(b) != want {
			t.Errorf("job %d: output %q, %v, want %q", i, b, err, want)
		}
	}
	d.end(l)
	t.Logf("%d jobs through %d kills; a daemon is up and answers within %v", jobs, adoptKills, took)
}

// Promise 7: a job whose shim is silent for a while, or whose socket is gone, is neither given up nor started again,
// also by a daemon that starts meanwhile.
func TestPromise07SilenceIsNotFailure(t *testing.T) {
	d := newDaemons(t, 2)
	l := d.up()
	const waits = "until [ -e go ]; do sleep 0.05; done; exit "
	d.submit("jobs: [{name: frozen, command: [sh, -c, '" + waits + "5']}, {name: cut-off, command: [sh, -c, '" + waits +
		"6']}]")
	d.until("frozen", "running")
	d.until("cut-off", "running")
	frozen, err := d.state.RunDir(0, 1).Alive()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(frozen.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(frozen.PID, syscall.SIGCONT) //nolint:errcheck // where the test fails
	socket := filepath.Join(string(d.state.RunDir(1, 1)), "control")
	if err := os.Rename(socket, socket+".away"); err != nil {
		t.Fatal(err)
	}
	l.signal(syscall.SIGKILL) // the next one knows neither
	l.within(patience)
	l = d.up()
	d.let("go")
	for end := time.Now().Add(patience); !isOver(d.state.RunDir(1, 1)) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if j := d.job("frozen"); j.State != "running" || j.Attempt != 1 {
		t.Errorf("%+v, want it taken for running", j)
	}
	if err := syscall.Kill(frozen.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	_ = os.Rename(socket+".away", socket) // unless its shim has ended and has taken it along
	for name, code := range map[string]int{"frozen": 5, "cut-off": 6} {
		if j := d.until(name, "done"); j.ExitCode != code || j.Attempt != 1 {
			t.Errorf("%+v, want its only attempt to end with code %d", j, code)
		}
	}
	d.end(l)
}

// Promise 8: while a daemon is stopped the folder is refused to another. If its lock is lost all the same, the new one
// decides alone: what the old one was asked for meanwhile is not acknowledged, and it ends.
func TestPromise08StaleManagerCannotAct(t *testing.T) {
	d := newDaemons(t, 1)
	stale := d.up()
	d.submit("jobs: [{name: long, command: [sleep, 1h]}]")
	d.until("long", "running")
	old, err := api.Dial(string(d.state))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	stale.signal(syscall.SIGSTOP)
	answered, asked := make(chan error, 1), make(chan struct{})
	go func() {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			WroteRequest: func(httptrace.WroteRequestInfo) { close(asked) }})
		_, err := old.Submit(ctx, d.submission("jobs: [{name: ghost, command: ['true']}]"))
		answered <- err
	}()
	<-asked // while its socket is the folder's
	refused := d.serve("")
	if !refused.within(patience) || refused.cmd.ProcessState.ExitCode() != exitConflict ||
		!strings.Contains(refused.stderr.String(), "in use") {
		t.Fatalf("a second daemon: %v\n%s", refused.cmd.ProcessState, &refused.stderr)
	}
	if err := os.Remove(filepath.Join(string(d.state), "lock")); err != nil {
		t.Fatal(err)
	}
	d.client = nil
	now := d.up()
	d.submit("jobs: [{name: next, command: ['true']}]")
	stale.signal(syscall.SIGCONT)
	switch err := <-answered; {
	case err == nil:
		if _, lost := d.dial().Job(t.Context(), "ghost"); lost != nil {
			t.Errorf("a stale daemon has acknowledged a job that is lost: %v", lost)
		}
	default:
		t.Logf("the stale daemon: %v", err)
	}
	if !stale.within(patience) || stale.cmd.ProcessState.ExitCode() == 0 {
		t.Errorf("the stale daemon: %v\n%s", stale.cmd.ProcessState, &stale.stderr)
	}
	d.client = nil // a new connection
	d.answers(now) // its socket is its own still
	if j := d.job("long"); j.State != "running" || j.Attempt != 1 {
		t.Errorf("%+v, want it to run on", j)
	}
	if _, err := d.dial().Cancel(t.Context(), "long"); err != nil {
		t.Error(err)
	}
	if j := d.until("next", "done"); j.Outcome != "finished" {
		t.Errorf("%+v", j)
	}
	d.end(now)
}

// copyFile copies a file.
func copyFile(t *testing.T, to, from string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err == nil {
		_, err = io.Copy(out, in)
		_ = out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Promise 10: a folder whose log is missing, empty, older than the folder or of another program is refused with a text
// that says what to do, each time; the job that runs there is left alone, and goes on under its daemon once the log is
// back.
func TestPromise10WrongStateIsRefused(t *testing.T) {
	d := newDaemons(t, 2)
	l := d.up()
	path := filepath.Join(string(d.state), "trainyard.db")
	d.submit("jobs: [{name: early, command: ['true']}]")
	d.until("early", "done")
	d.end(l)
	copyFile(t, path+".older", path)
	l = d.up()
	d.submit("jobs: [{name: long, command: [sh, -c, 'until [ -e go ]; do sleep 0.02; done; exit 9']}]")
	d.until("long", "running")
	d.end(l)
	copyFile(t, path+".whole", path)
	alive, err := d.state.RunDir(1, 1).Alive()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, says string
		spoil      func()
	}{
		{"missing", "put the log back, or start in an empty folder", func() { must(t, os.Remove(path)) }},
		{"empty", "is empty: put the one that belongs here back", func() { must(t, os.Truncate(path, 0)) }},
		{"older", "the log is older than the folder; restore the log that belongs to it",
			func() { copyFile(t, path, path+".older") }},
		{"of another program", "not a database",
			func() { must(t, os.WriteFile(path, []byte(strings.Repeat("once upon a time ", 500)), 0o600)) }},
		{"cut", "malformed", func() { must(t, os.Truncate(path, 8192)) }},
	} {
		copyFile(t, path, path+".whole")
		c.spoil()
		for range 2 {
			bad := d.serve("")
			if !bad.within(patience) {
				t.Fatalf("%s: it is served", c.name)
			}
			if code := bad.cmd.ProcessState.ExitCode(); code == 0 || code == 2 ||
				!strings.Contains(bad.stderr.String(), c.says) {
				t.Errorf("%s: code %d, want %q:\n%s", c.name, code, c.says, &bad.stderr)
			}
		}
		if now, err := d.state.RunDir(1, 1).Alive(); err != nil || *now != *alive || !now.Lives() {
			t.Errorf("%s: the job that ran is %+v, %v", c.name, now, err)
		}
	}
	copyFile(t, path, path+".whole")
	must(t, os.WriteFile(filepath.Join(d.dir, "go"), nil, 0o600))
	l = d.up()
	if j := d.until("long", "done"); j.ExitCode != 9 || j.Attempt != 1 {
		t.Errorf("%+v, want the end of its first attempt with code 9", j)
	}
	d.end(l)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
