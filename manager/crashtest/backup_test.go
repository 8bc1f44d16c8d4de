package crashtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/driver/local/shim/shimtest"
	"github.com/trainyard/trainyard/internal/testsize"
)

// backups is how often a folder under load is backed up.
var backups = testsize.Flag("backups", 6, 60, "times that a folder under load is backed up and restored")

// perSubmit is how many jobs are submitted together: they are in a backup together, or none of them is.
const perSubmit = 3

// ledgerOfSubmits is what was acknowledged: the highest number of a job so far.
type ledgerOfSubmits struct {
	mu    sync.Mutex
	known int // jobs
}

func (l *ledgerOfSubmits) jobs() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

// grows waits until more was acknowledged than is now.
func (l *ledgerOfSubmits) grows(t *testing.T) {
	t.Helper()
	before, end := l.jobs(), time.Now().Add(patience)
	for ; l.jobs() < before+2*perSubmit; time.Sleep(time.Millisecond) {
		if t.Failed() || time.Now().After(end) {
			t.Fatalf("%d jobs are acknowledged, and no more come", before)
		}
	}
}

// attempt waits until a job runs for the n-th time.
func (d *daemons) attempt(name string, n int) {
	d.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		j := d.job(name)
		if j.State == "running" && j.Attempt == n {
			return
		}
		if time.Now().After(end) {
			d.t.Fatalf("job %s: %+v, want attempt %d to run", name, j, n)
		}
	}
}

// submitWaiting submits jobs that wait, three at a time, until ctx ends, and notes what was acknowledged.
func (d *daemons) submitWaiting(ctx context.Context, number int, l *ledgerOfSubmits) {
	c, err := api.Dial(string(d.state))
	if err != nil {
		d.t.Error(err)
		return
	}
	defer c.Close()
	for n := 0; ctx.Err() == nil; n++ {
		doc, err := c.Submit(ctx, d.submission(fmt.Sprintf("jobs: [{name: w%d-%d, count: %d, command: ['true'], "+
			"submit: 10h}]", number, n, perSubmit)))
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			d.t.Error(err)
			return
		}
		l.mu.Lock()
		for i := range doc.Jobs {
			l.known = max(l.known, doc.Jobs[i].ID+1)
		}
		l.mu.Unlock()
	}
}

// restored serves the folder that a backup is restored into, which is new.
func (d *daemons) restored(file string) (*daemons, *life) {
	d.t.Helper()
	r := newDaemons(d.t, d.slots)
	r.args = append(r.args, "--restore", file)
	l := r.serve("")
	r.answers(l)
	r.args = nil
	return r, l
}

// Promise 25: backups of a folder that is served under load have all that was acknowledged before, and what was
// submitted together whole. A manager goes on from each; the job that ran starts again there, and runs on where it was.
func TestPromise25BackupUnderLoad(t *testing.T) {
	d := newDaemons(t, 2)
	l := d.up()
	d.submit("jobs: [{name: long, command: [sh, -c, 'until [ -e go ]; do sleep 0.05; done']}]")
	d.until("long", "running")
	const clientsHere = 3
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load sync.WaitGroup
	var acknowledged ledgerOfSubmits
	for i := range clientsHere {
		load.Go(func() { d.submitWaiting(ctx, i, &acknowledged) })
	}
	var least, most []int
	for n := range backups.N() {
		acknowledged.grows(t)
		least = append(least, acknowledged.jobs())
		name := fmt.Sprintf("%d.backup", n)
		if code, said := command(t, d.dir, "backup", "--state", "state", name); code != 0 {
			t.Fatalf("backup: code %d\n%s", code, said)
		}
		most = append(most, acknowledged.jobs()+clientsHere*perSubmit) // some may be durable, and not acknowledged yet
		if info, err := os.Stat(filepath.Join(d.dir, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", name, info, err)
		}
	}
	stop()
	load.Wait()
	if left, _ := filepath.Glob(filepath.Join(d.dir, ".trainyard-backup*")); len(left) > 0 {
		t.Errorf("backups leave %v", left)
	}
	for n := range backups.N() {
		r, served := d.restored(filepath.Join(d.dir, fmt.Sprintf("%d.backup", n)))
		doc, err := r.dial().Jobs(t.Context(), api.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(doc.Jobs); got < least[n] || got > most[n] || got%perSubmit != 1 {
			t.Errorf("backup %d has %d jobs, want from %d to %d, and of each submit all %d", n, got, least[n], most[n],
				perSubmit)
		}
		r.attempt("long", 2)
		served.kill()
		shimtest.EndAll(t, r.state)
	}
	if j := d.job("long"); j.State != "running" || j.Attempt != 1 {
		t.Errorf("%+v, want it to run on", j)
	}
	d.let("go")
	d.until("long", "done")
	d.end(l)
	t.Logf("%d backups, of %d to %d jobs", backups.N(), least[0], acknowledged.jobs())
}

// Promise 25: a restore that is killed leaves the folder as good as empty, or whole with its tokens, wherever that is.
func TestPromise25KilledRestore(t *testing.T) {
	d := newDaemons(t, 2)
	l := d.up()
	in := d.submission("jobs: [{name: later, count: 3, command: [sh, x.sh], submit: 10h, inherit_env: true, " +
		"snapshot: script}]")
	in.Inherit = map[string]string{"A": "b"}
	in.Scripts = map[string]string{filepath.Join(d.dir, "x.sh"): "true"}
	if _, err := d.dial().Submit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if code, said := command(t, d.dir, "token", "create", "--state", "state", "--user", "ann", "anns"); code != 0 {
		t.Fatalf("token: code %d\n%s", code, said)
	}
	file := filepath.Join(d.dir, "x.backup")
	if code, said := command(t, d.dir, "backup", "--state", "state", file); code != 0 {
		t.Fatalf("backup: code %d\n%s", code, said)
	}
	d.end(l)
	for _, point := range restorePoints {
		for _, again := range []bool{true, false} {
			r := newDaemons(t, 2, "--restore", file)
			dead := r.serve(point)
			if !dead.within(patience) || !dead.shot() {
				t.Fatalf("%s: it does not die\n%s", point, &dead.stderr)
			}
			whole := point != "restore.written"
			if !again || whole {
				r.args = nil
			}
			served := r.serve("")
			r.answers(served)
			doc, err := r.dial().Jobs(t.Context(), api.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			code, tokens := command(t, r.dir, "token", "list", "--state", "state")
			want := map[bool]int{true: 3, false: 0}[whole || again]
			if len(doc.Jobs) != want || code != 0 || strings.Contains(tokens, "anns") != (want > 0) {
				t.Errorf("%s, restored again %t: %d jobs, want %d; tokens (code %d): %s", point, again, len(doc.Jobs),
					want, code, tokens)
			}
			envs, _ := r.state.KeptEnvs()
			scripts, _, _ := r.state.Snapshots()
			if has := min(want, 1); len(envs) != has || len(scripts) != has {
				t.Errorf("%s, restored again %t: environments %v, scripts %v, want %d", point, again, envs, scripts,
					has)
			}
			if left, _ := filepath.Glob(filepath.Join(string(r.state), "new.db*")); len(left) > 0 {
				t.Errorf("%s, restored again %t: it leaves %v", point, again, left)
			}
			r.end(served)
		}
	}
}

// Ensure that a second restore into the same folder is refused with what to do, and that the number of slots is that of
// the log where no flag says another.
func TestRestoreTwice(t *testing.T) {
	d := newDaemons(t, 3)
	l := d.up()
	d.submit("jobs: [{name: later, command: ['true'], submit: 10h}]")
	file := filepath.Join(d.dir, "x.backup")
	if code, said := command(t, d.dir, "backup", "--state", "state", file); code != 0 {
		t.Fatalf("backup: code %d\n%s", code, said)
	}
	d.end(l)
	dir := filepath.Join(d.dir, "two")
	first := live(t, d.dir, "", nil, "serve", "--state", dir, "--restore", file)
	other := &daemons{t: t, dir: d.dir, state: shim.State(dir), slots: 3}
	info := other.answers(first)
	nodes, err := other.dial().Nodes(t.Context())
	if err != nil || len(nodes.GPUs) != 3 {
		t.Errorf("%d slots, %v, want 3 of %s", len(nodes.GPUs), err, strconv.Itoa(info.PID))
	}
	other.end(first)
	second := live(t, d.dir, "", nil, "serve", "--state", dir, "--restore", file)
	if !second.within(patience) || second.cmd.ProcessState.ExitCode() != exitConflict ||
		!strings.Contains(second.stderr.String(), "want an empty folder; without") {
		t.Errorf("%v\n%s", second.cmd.ProcessState, &second.stderr)
	}
}
