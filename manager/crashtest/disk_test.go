package crashtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/api"
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

// hog is a file that takes all room of the disk of a state folder.
type hog struct {
	t    *testing.T
	path string
}

// fill takes what room there is.
func (h *hog) fill() {
	h.t.Helper()
	f, err := os.OpenFile(h.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(h.t, err)
	for size := 1 << 20; size >= 1; size /= 16 {
		for err = error(nil); err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, unix.ENOSPC) {
			h.t.Fatal(err)
		}
	}
	must(h.t, f.Close())
}

// free gives it all back.
func (h *hog) free() { must(h.t, os.Remove(h.path)) }

// newHog mounts a disk of a size for the state folder.
func newHog(t *testing.T, d *daemons, size string) *hog {
	t.Helper()
	mount(t, "none", string(d.state), "tmpfs", 0, "mode=0700,size="+size)
	return &hog{t, filepath.Join(string(d.state), "fill")}
}

// reserve is how many bytes the reserve of the folder has.
func (d *daemons) reserve() int64 {
	info, err := os.Stat(filepath.Join(string(d.state), "reserve"))
	if err != nil {
		d.t.Fatal(err)
	}
	return info.Size()
}

// toggle pauses and resumes a job that waits, each of which must be acknowledged.
func (d *daemons) toggle(job string) {
	d.t.Helper()
	if _, err := d.dial().Pause(d.t.Context(), job); err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.dial().Resume(d.t.Context(), job); err != nil {
		d.t.Fatal(err)
	}
}

// untilRefused submits jobs that wait for long until one is refused, and returns those that were acknowledged.
func (d *daemons) untilRefused(prefix string) (map[string]int, error) {
	d.t.Helper()
	list := map[string]int{}
	for n := 0; ; n++ {
		name := fmt.Sprint(prefix, n)
		doc, err := d.dial().Submit(d.t.Context(),
			d.submission("jobs: [{name: "+name+", command: ['true'], submit: 10h}]"))
		if err != nil {
			return list, err
		}
		list[name] = doc.Jobs[0].ID
	}
}

// refuses checks that jobs are refused for want of room, with figures, by the API and by the command line.
func (d *daemons) refuses() {
	d.t.Helper()
	_, err := d.dial().Submit(d.t.Context(), d.submission("jobs: [{command: ['true']}]"))
	p := (*api.Problem)(nil)
	if !errors.Is(err, api.ErrFull) || !errors.As(err, &p) || p.Status != 507 ||
		!strings.Contains(p.Detail, " MiB free, want ") {
		d.t.Errorf("jobs on a full disk: %v, want 507 with figures", err)
	}
	cmd := exec.Command(trainyard, "submit", "--state", string(d.state), "--", "true")
	said, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 5 || !strings.Contains(string(said), " MiB free, want ") {
		d.t.Errorf("submit on a full disk: %v\n%s", cmd.ProcessState, said)
	}
}

// Promise 10, full disk: ends and cancels are recorded, in the room of the reserve; submits are refused, nothing
// starts, what runs goes on, and ps says why. A daemon that is killed there and started again does the same. With room
// again it goes on by itself, and all that was acknowledged is there.
func TestPromise10FullDisk(t *testing.T) {
	d := newDaemons(t, 3)
	h := newHog(t, d, "160M")
	l := d.up()
	const waits = "command: [sh, -c, 'until [ -e %s ]; do sleep 0.02; done; exit %d']"
	d.submit("jobs: [{name: long, " + fmt.Sprintf(waits, "go", 9) + "}, {name: short, " +
		fmt.Sprintf(waits, "soon", 7) + "}, {name: doomed, command: [sleep, 1h]}]")
	for _, name := range []string{"long", "short", "doomed"} {
		d.until(name, "running")
	}
	queued := d.submit("jobs: [{name: queued, command: ['true']}]")[0].ID
	if size := d.reserve(); size != 32<<20 {
		t.Fatalf("a reserve of %d bytes", size)
	}
	h.fill()
	acknowledged, err := d.untilRefused("n")
	if !errors.Is(err, api.ErrFull) {
		t.Fatalf("%v after %d jobs", err, len(acknowledged))
	}
	toggled := 0
	for ; d.reserve() > 0 && toggled < 5000; toggled++ { // what room the files of the log have is used up first
		d.toggle("queued")
	}
	h.fill() // and what was let go
	t.Logf("%d jobs acknowledged on the full disk; the reserve given up after %d pauses", len(acknowledged), toggled)
	onFull := func(when string) {
		t.Helper()
		if size := d.reserve(); size != 0 {
			t.Errorf("%s: a reserve of %d bytes, want it empty", when, size)
		}
		d.refuses()
		for range 50 {
			d.toggle("queued")
		}
		if j := d.job("queued"); j.State != "waiting" || j.Attempt != 0 || !strings.Contains(j.Why, "is full: ") {
			t.Errorf("%s: %+v, want it to wait for room", when, j)
		}
		if j := d.job("long"); j.State != "running" || j.Attempt != 1 {
			t.Errorf("%s: %+v, want it to run on", when, j)
		}
	}
	d.let("soon")
	if j := d.until("short", "done"); j.ExitCode != 7 {
		t.Errorf("%+v, want its end with code 7", j)
	}
	onFull("full")
	for range 2 {
		l.kill()
		h.fill()
		l = d.up()
		onFull("started on the full disk")
	}
	if _, err := d.dial().Cancel(t.Context(), "doomed"); err != nil {
		t.Error(err)
	}
	if j := d.until("doomed", "done"); j.Outcome != "cancelled" {
		t.Errorf("%+v, want it cancelled", j)
	}
	l.kill()
	h.fill()
	l = d.up()
	for name, outcome := range map[string]string{"short": "failed", "doomed": "cancelled"} {
		if j := d.job(name); j.State != "done" || j.Outcome != outcome {
			t.Errorf("%+v, want it %s", j, outcome)
		}
	}
	onFull("after the cancel")
	h.free()
	if j := d.until("queued", "done"); j.Outcome != "finished" || j.ID != queued {
		t.Errorf("%+v, want it to run with room again", j)
	}
	d.submit("jobs: [{name: later, command: ['true']}]")
	d.until("later", "done")
	if size := d.reserve(); size != 32<<20 {
		t.Errorf("with room again: a reserve of %d bytes", size)
	}
	for name, id := range acknowledged {
		if j := d.job(name); j.ID != id {
			t.Errorf("job %s is %+v, want number %d", name, j, id)
		}
	}
	d.let("go")
	if j := d.until("long", "done"); j.ExitCode != 9 || j.Attempt != 1 {
		t.Errorf("%+v, want its only attempt to end with code 9", j)
	}
	d.end(l)
}

// Promise 10, no room at all: where even a reserve does not help, or there never was one, the daemon takes no jobs,
// does not end, says why to whoever asks, and goes on once there is room.
func TestPromise10NoReserve(t *testing.T) {
	d := newDaemons(t, 1)
	h := newHog(t, d, "6M")
	l := d.up()
	d.refuses()
	if size := d.reserve(); size != 0 {
		t.Errorf("a reserve of %d bytes on a disk of 6 MiB", size)
	}
	h.fill()
	err := error(nil)
	for n := 0; err == nil && n < 10000; n++ {
		_, err = d.dial().Drain(t.Context(), n%2 == 0)
	}
	if !errors.Is(err, api.ErrTimeout) {
		t.Fatalf("%v, want no answer in time", err)
	}
	if _, err := d.dial().Jobs(t.Context(), api.Filter{}); !errors.Is(err, api.ErrTimeout) ||
		!strings.Contains(err.Error(), " MiB free, want ") {
		t.Errorf("ps: %v, want why", err)
	}
	if l.within(0) {
		t.Fatalf("the daemon has ended:\n%s", &l.stderr)
	}
	h.free()
	d.answers(l)
	if _, err := d.dial().Drain(t.Context(), false); err != nil {
		t.Error(err)
	}
	must(t, unix.Mount("none", string(d.state), "tmpfs", unix.MS_REMOUNT, "mode=0700,size=160M"))
	for end := time.Now().Add(patience); d.reserve() == 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		_, err := d.dial().Submit(t.Context(), d.submission("jobs: [{name: first, command: ['true']}]"))
		if err == nil {
			break
		}
		if !errors.Is(err, api.ErrFull) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if j := d.until("first", "done"); j.Outcome != "finished" {
		t.Errorf("%+v", j)
	}
	d.end(l)
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
