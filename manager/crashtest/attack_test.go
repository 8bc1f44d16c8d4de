package crashtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ensure that a daemon whose folder is moved away says so and ends, and that the next one goes on once it is back.
func TestAttackFolderMoved(t *testing.T) {
	for name, lose := range map[string]func(state string) error{
		"moved":       func(state string) error { return os.Rename(state, state+".away") },
		"log removed": func(state string) error { return os.Rename(filepath.Join(state, "trainyard.db"), state+".db") },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDaemons(t, 1)
			l := d.up()
			d.submit("jobs: [{name: waits, command: [sh, -c, 'until [ -e go ]; do sleep 0.05; done; exit 3']}]")
			d.until("waits", "running")
			if err := lose(string(d.state)); err != nil {
				t.Fatal(err)
			}
			if !l.within(patience) {
				t.Fatal("the daemon goes on")
			}
			if said := l.stderr.String(); l.cmd.ProcessState.ExitCode() != 1 ||
				strings.Count(said, "is not where it was") != 1 {
				t.Errorf("exit code %d, %s", l.cmd.ProcessState.ExitCode(), said)
			}
			_ = os.Rename(string(d.state)+".away", string(d.state))
			_ = os.Rename(string(d.state)+".db", filepath.Join(string(d.state), "trainyard.db"))
			d.client = nil
			l = d.up()
			d.let("go")
			if j := d.until("waits", "done"); j.ExitCode != 3 || j.Attempt != 1 {
				t.Errorf("%+v, want its only attempt to end with code 3", j)
			}
			d.end(l)
		})
	}
}

// Ensure that no record that a job leaves, nor what it says to a shim's socket, ends a daemon or keeps one from
// starting, that the text of an end is cut, and that other jobs run on.
func TestAttackDaemon(t *testing.T) {
	d := newDaemons(t, 2)
	l := d.up()
	d.submit("jobs: [{name: victim, command: [sh, -c, 'until [ -e go ]; do sleep 0.05; done; exit 5']}]")
	d.until("victim", "running")
	for i, record := range []string{
		"ln -sf /dev/zero over.json",
		"mkfifo over.json",
		"mkdir over.json",
		`(printf '{"code":1,"text":"'; head -c 30000000 /dev/zero | tr '\0' x; printf '"}') >over.json`,
		`(printf '{"code":1,"text":"'; head -c 60000 /dev/zero | tr '\0' x; printf '"}') >over.json`,
		`echo '{"code":1099511627776,"ended":"9999-01-01T00:00:00Z"}' >over.json`,
		"echo '[' >over.json; rm ../lock; ln -s /dev/zero ../lock",
	} {
		script := fmt.Sprintf("cd $TRAINYARD_RUN_DIR; until [ -e alive.json ]; do sleep 0.01; done; %s; kill -9 $PPID",
			record)
		name := fmt.Sprintf("attack-%d", i)
		d.submit(fmt.Sprintf("jobs: [{name: %s, retries: 0, command: [sh, -c, %q]}]", name, script))
		if i == 3 { // no one is there when it ends
			l.signal(syscall.SIGKILL)
			l.within(patience)
			l = d.up()
		}
		for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			j := d.job(name)
			if j.State == "done" || j.Attempt > 1 || j.State == "waiting" && j.Attempt > 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %+v", record, j)
			}
		}
		if _, err := d.dial().Cancel(t.Context(), name); err != nil && d.job(name).State != "done" {
			t.Errorf("%s: %v", record, err)
		}
		d.until(name, "done")
	}
	d.claim(0)
	l.signal(syscall.SIGTERM)
	l.within(patience)
	d.client = nil
	l = d.up()
	d.claim(0)
	var log strings.Builder
	if err := d.dial().WriteLog(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(log.String()) {
		if len(line) > 64<<10 {
			t.Errorf("a line of the log has %d bytes: %.200s", len(line), line)
		}
	}
	d.let("go")
	if j := d.until("victim", "done"); j.ExitCode != 5 || j.Attempt != 1 {
		t.Errorf("%+v, want it to have run on", j)
	}
	d.end(l)
}

// claim says to the shim of a job that a later manager than can be gives orders.
func (d *daemons) claim(job int32) {
	d.t.Helper()
	folder, err := os.Open(string(d.state.RunDir(job, 1)))
	if err != nil {
		d.t.Fatal(err)
	}
	defer folder.Close()
	conn, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/control", folder.Fd()))
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, `{"epoch":9223372036854775807}`); err != nil {
		d.t.Fatal(err)
	}
	_, _ = conn.Read(make([]byte, 1)) // it was heard
}
