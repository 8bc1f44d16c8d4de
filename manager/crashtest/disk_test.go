package crashtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mount mounts something at path until the test ends.
func mount(t *testing.T, from, path, kind string, flags uintptr, options string) {
	t.Helper()
	must(t, os.MkdirAll(path, 0o700))
	if err := unix.Mount(from, path, kind, flags, options); err != nil {
		t.Skip("no right to mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
}

// Promise 10, full disk: what cannot be made durable is not acknowledged, and the daemon ends and says why; the job
// that runs goes on. With room again the next daemon has all that was acknowledged, and the end of the job.
func TestPromise10FullDisk(t *testing.T) {
	d := newDaemons(t, 1)
	mount(t, "none", string(d.state), "tmpfs", 0, "size=3M,mode=0700")
	l := d.up()
	d.submit("jobs: [{name: long, command: [sh, -c, 'until [ -e go ]; do sleep 0.02; done; exit 9']}]")
	d.until("long", "running")
	fill := filepath.Join(string(d.state), "fill")
	f, err := os.Create(fill)
	must(t, err)
	for err = error(nil); err == nil; {
		_, err = f.Write(make([]byte, 4096))
	}
	must(t, f.Close())
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	acknowledged, refused := map[string]int{}, error(nil)
	for n := 0; refused == nil && n < 2000; n++ { // what room its files have is used up first
		name := fmt.Sprint("n", n)
		doc, err := d.dial().Submit(t.Context(),
			d.submission("jobs: [{name: "+name+", command: ['true'], submit: 10h}]"))
		if refused = err; err == nil {
			acknowledged[name] = doc.Jobs[0].ID
		}
	}
	if !unanswered(refused) || !l.within(patience) || l.cmd.ProcessState.ExitCode() != 1 ||
		!strings.Contains(l.stderr.String(), "full") {
		t.Errorf("%v after %d jobs, want the daemon to end and say why: %v\n%s", refused, len(acknowledged),
			l.cmd.ProcessState, &l.stderr)
	}
	again := d.serve("")
	if again.within(patience/10) && !strings.Contains(again.stderr.String(), "full") &&
		!strings.Contains(again.stderr.String(), "no space") {
		t.Errorf("another daemon without room:\n%s", &again.stderr)
	}
	again.kill()
	if alive, err := d.state.RunDir(0, 1).Alive(); err != nil || !alive.Lives() {
		t.Errorf("the job: %+v, %v, want it to run on", alive, err)
	}
	must(t, os.Remove(fill))
	must(t, os.WriteFile(filepath.Join(d.dir, "go"), nil, 0o600))
	l = d.up()
	for name, id := range acknowledged {
		if j := d.job(name); j.ID != id {
			t.Errorf("job %s is %+v, want number %d", name, j, id)
		}
	}
	if j := d.until("long", "done"); j.ExitCode != 9 || j.Attempt != 1 {
		t.Errorf("%+v, want its only attempt to end with code 9", j)
	}
	d.end(l)
	t.Logf("%d jobs acknowledged before the disk was full", len(acknowledged))
}

// Promise 10, read-only: a folder that cannot be written to is refused, and the job that runs there goes on.
func TestPromise10ReadOnly(t *testing.T) {
	d := newDaemons(t, 1)
	l := d.up()
	d.submit("jobs: [{name: long, command: [sh, -c, 'until [ -e go ]; do sleep 0.02; done; exit 9']}]")
	d.until("long", "running")
	l.kill()
	same := filepath.Join(d.dir, "same")
	mount(t, string(d.state), same, "", unix.MS_BIND, "")
	must(t, unix.Mount("", same, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	bad := live(t, d.dir, "", nil, "serve", "--state", "same", "--slots", "1")
	if !bad.within(patience) || bad.cmd.ProcessState.ExitCode() == 0 ||
		!strings.Contains(bad.stderr.String(), "read-only") {
		t.Errorf("a daemon of a folder that is read-only: %v\n%s", bad.cmd.ProcessState, &bad.stderr)
	}
	must(t, os.WriteFile(filepath.Join(d.dir, "go"), nil, 0o600))
	l = d.up()
	if j := d.until("long", "done"); j.ExitCode != 9 || j.Attempt != 1 {
		t.Errorf("%+v, want its only attempt to end with code 9", j)
	}
	d.end(l)
}
