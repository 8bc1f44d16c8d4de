package crashtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/driver/local/shim/shimtest"
)

// daemons is a folder that one `trainyard serve` after the other manages.
type daemons struct {
	t      testing.TB
	dir    string
	state  shim.State
	slots  int
	client *api.Client
	args   []string // more flags of serve
}

// newDaemons makes a folder for jobs on so many slots, and a ledger for trainers. What runs in it ends with the test.
func newDaemons(t testing.TB, slots int, args ...string) *daemons {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(trainyard), "served-") // goes with the programs: tests may share it
	if err != nil {
		t.Fatal(err)
	}
	d := &daemons{t: t, dir: dir, slots: slots, args: args}
	d.state = shim.State(filepath.Join(d.dir, "state"))
	writeJobs(t, d.dir, nil) // makes the ledger's folder
	t.Cleanup(func() { shimtest.EndAll(t, d.state) })
	return d
}

// serve starts a daemon, armed with a failpoint if that is not "".
func (d *daemons) serve(armed string) *life {
	d.t.Helper()
	args := append([]string{"serve", "--state", "state", "--slots", strconv.Itoa(d.slots)}, d.args...)
	return live(d.t, d.dir, armed, nil, args...)
}

// up starts a daemon and waits until it answers.
func (d *daemons) up() *life {
	d.t.Helper()
	l := d.serve("")
	d.answers(l)
	return l
}

// answers waits until a daemon answers.
func (d *daemons) answers(l *life) api.Info {
	d.t.Helper()
	for end := time.Now().Add(patience); ; {
		// who answers may be an earlier one, which is stopped
		ctx, cancel := context.WithTimeout(d.t.Context(), time.Second)
		info, err := d.dial().Info(ctx)
		cancel()
		if err == nil && info.PID == l.cmd.Process.Pid {
			return info
		}
		if l.within(5*time.Millisecond) || time.Now().After(end) {
			d.t.Fatalf("a daemon does not answer: %v\n%s", err, &l.stderr)
		}
	}
}

// dial returns the client of the folder, once there is one.
func (d *daemons) dial() *api.Client {
	d.t.Helper()
	for end := time.Now().Add(patience); d.client == nil; time.Sleep(time.Millisecond) {
		c, err := api.Dial(string(d.state))
		if err == nil {
			d.client = c
			d.t.Cleanup(func() { _ = c.Close() })
		} else if time.Now().After(end) {
			d.t.Fatal(err)
		}
	}
	return d.client
}

// submit submits a job file, which must be taken.
func (d *daemons) submit(file string) []api.Estimate {
	d.t.Helper()
	doc, err := d.dial().Submit(d.t.Context(), d.submission(file))
	if err != nil {
		d.t.Fatal(err)
	}
	return doc.Jobs
}

// submission is a job file whose trainers keep the ledger.
func (d *daemons) submission(file string) api.Submission {
	return api.Submission{File: file, Dir: d.dir}
}

// ledgerEnv is the environment of trainers that keep the ledger, as part of a job file.
func (d *daemons) ledgerEnv() string {
	return "env: {TRAINER_LEDGER: " + strconv.Quote(filepath.Join(d.dir, "ledger")) + "}"
}

// let makes a file in the folder in which jobs run: some wait for one.
func (d *daemons) let(name string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), nil, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// job returns how a job stands.
func (d *daemons) job(name string) api.Job {
	d.t.Helper()
	j, err := d.dial().Job(d.t.Context(), name)
	if err != nil {
		d.t.Fatalf("job %s: %v", name, err)
	}
	return j
}

// until waits for a job to be in a state.
func (d *daemons) until(name, state string) api.Job {
	d.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		j := d.job(name)
		if j.State == state {
			return j
		}
		if time.Now().After(end) {
			d.t.Fatalf("job %s: %+v, want it %s", name, j, state)
		}
	}
}

// keepLog writes the log to events.jsonl.
func (d *daemons) keepLog() {
	d.t.Helper()
	file, err := os.Create(filepath.Join(d.dir, "events.jsonl"))
	if err == nil {
		err = errors.Join(d.dial().WriteLog(d.t.Context(), file), file.Close())
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// end has a daemon stop as its user has it stop.
func (d *daemons) end(l *life) {
	d.t.Helper()
	l.signal(sigterm)
	if !l.within(patience) {
		d.t.Fatalf("a daemon does not stop:\n%s", &l.stderr)
	}
	if code := l.cmd.ProcessState.ExitCode(); code != 0 {
		d.t.Errorf("a daemon ended with code %d:\n%s", code, &l.stderr)
	}
}

// unanswered reports whether a request may or may not have been heard: the daemon died.
func unanswered(err error) bool {
	return errors.Is(err, api.ErrNoManager) || errors.Is(err, api.ErrStopped) ||
		errors.Is(err, context.DeadlineExceeded)
}
