package crashtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/internal/failpoint"
)

// acknowledgement is what a client was answered about a job, and when.
type acknowledgement struct {
	at        int64 // µs since 1970
	job       api.Job
	cancelled bool
}

// recording is what daemons and shims did to a folder under load, and what clients saw of them.
type recording struct {
	*daemons
	mu    sync.Mutex
	heard []acknowledgement // in order
	known map[int]api.Job   // by number, as it was last seen

	seen   *watcher
	log    *eventLog
	events []byte // of the whole log, without its header
	lives  int
	cutOff int // calls in which a thread was killed
}

// settingsOf are keys under which jobs of a second are preempted.
var settingsOf = map[string]string{"min_run": "0", "thresholds": "0.2"}

// loop serves a folder until there is a file stop. A daemon that dies has a successor a moment later. In between the
// files of its log are copied: nothing else says how far a write had come in which it was killed.
const loop = `n=0
while [ ! -e stop ]; do
	mkdir "` + copies + `$n"; cp state/trainyard.db state/trainyard.db-wal "` + copies + `$n" 2>/dev/null; n=$((n+1))
	export ` + failpoint.Variable + `="$(cat armed 2>/dev/null)"; rm -f armed
	"$@"
	sleep 0.3
done`

// copies is the start of the names of the folders with copies of the log.
const copies = "life-"

// recordWhole records loads until the record of one leads to the folder that there is. What strace reads of a thread
// that is killed at that moment can be wrong in ways that do not show; a daemon has no part in that.
func recordWhole(t *testing.T, lives, done int) *recording {
	t.Helper()
	for range 3 {
		r := recordLoad(t, lives, done)
		if err := r.complete(); err != nil {
			t.Log(err)
			continue
		}
		return r
	}
	t.Fatal("no record is whole")
	return nil
}

// recordLoad has daemons of a new folder work under load, and die now and then, and reads all that they did.
// Each life ends once so many more jobs are done.
func recordLoad(t *testing.T, lives, done int) *recording {
	t.Helper()
	out, err := exec.Command("strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "true").CombinedOutput()
	if err != nil {
		t.Skipf("strace, which records what is done to the folder, cannot be used: %v %s", err, out)
	}
	r := &recording{daemons: newDaemons(t, 4), known: make(map[int]api.Job)}
	serve := []string{"sh", "-c", loop, "sh", trainyard, "serve", "--state", "state", "--slots", strconv.Itoa(r.slots)}
	for key, value := range settingsOf {
		serve = append(serve, "--set", "*."+key+"="+value)
	}
	trace := filepath.Join(r.dir, "calls")
	command := straced(trace, serve...)
	cmd := exec.Command(command[0], command[1:]...)
	var said bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.dir, &said, &said
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stopped := sync.OnceValue(func() error { return r.stop(ended) })
	t.Cleanup(func() { _ = stopped() })
	r.load(lives, done)
	r.settle()
	r.keepLog()
	if err = stopped(); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	r.log = readLog(t, r.dir)
	var calls []call
	text, err := os.ReadFile(filepath.Join(r.dir, "events.jsonl"))
	if err == nil {
		_, r.events, _ = bytes.Cut(text, []byte("\n"))
		calls, err = readCalls(trace)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.seen = watch(calls, r.dir, filepath.Base(string(r.state)))
	return r
}

// stop has the last daemon end, and waits until nothing that is recorded runs any more.
func (r *recording) stop(ended <-chan error) error {
	r.let("stop")
	for end := time.After(patience); ; {
		_ = syscall.Kill(r.pid(), syscall.SIGTERM) // again: another one may have started in between
		select {
		case err := <-ended:
			return err
		case <-end:
			return errors.New("what is recorded does not end")
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// pid is the process that serves the folder, as its lock says; a number of none if none does.
func (r *recording) pid() int {
	b, _ := os.ReadFile(filepath.Join(string(r.state), "lock"))
	pid, err := strconv.Atoi(string(b))
	if err != nil || pid <= 1 {
		return 1 << 30
	}
	return pid
}

// load has clients submit and cancel jobs, while daemons are killed.
func (r *recording) load(lives, done int) {
	ctx, stop := context.WithCancel(r.t.Context())
	defer stop()
	var clients sync.WaitGroup
	for i := range 3 {
		clients.Go(func() { r.client(ctx, i) })
	}
	clients.Go(func() { r.watchJobs(ctx) })
	arms := []string{"", "launch.spawned:2", "", "over:2", "", "commit.inside:20"}
	for ; r.lives < lives; r.lives++ {
		want, end := r.done()+done, time.Now().Add(patience)
		for ; r.done() < want && !r.t.Failed(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				r.t.Errorf("%d jobs are done, want %d", r.done(), want)
			}
		}
		must(r.t, os.WriteFile(filepath.Join(r.dir, "armed"), []byte(arms[r.lives%len(arms)]), 0o600))
		_ = syscall.Kill(r.pid(), syscall.SIGKILL)
	}
	stop()
	clients.Wait()
}

// done returns how many jobs are known to be done, having run.
func (r *recording) done() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range r.known {
		if j.State == "done" && j.Attempt > 0 {
			n++
		}
	}
	return n
}

// hear notes what was answered about a job, if that is new.
func (r *recording) hear(j *api.Job, cancelled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, known := r.known[j.ID]
	if known && !cancelled && was.State == j.State && was.Attempt == j.Attempt && was.Outcome == j.Outcome {
		return
	}
	r.known[j.ID] = *j
	r.heard = append(r.heard, acknowledgement{time.Now().UnixMicro(), *j, cancelled})
}

// ask calls f with a client of the folder again and again, at random moments, until ctx ends.
func (r *recording) ask(ctx context.Context, rand *rand.Rand, f func(c *api.Client, n int) error) {
	var c *api.Client
	defer func() {
		if c != nil {
			_ = c.Close()
		}
	}()
	for n := 0; ctx.Err() == nil; n++ {
		time.Sleep(time.Duration(rand.Int64N(int64(80 * time.Millisecond))))
		if c == nil {
			var err error
			if c, err = api.Dial(string(r.state)); err != nil {
				c = nil
				continue // there is no folder yet
			}
		}
		err := f(c, n)
		if err != nil && ctx.Err() == nil && !unanswered(err) && !errors.Is(err, fs.ErrNotExist) &&
			!errors.Is(err, api.ErrDone) {
			r.t.Error(err)
			return
		}
	}
}

// watchJobs looks how jobs stand.
func (r *recording) watchJobs(ctx context.Context) {
	r.ask(ctx, rand.New(rand.NewPCG(3, 100)), func(c *api.Client, _ int) error {
		doc, err := c.Jobs(ctx, api.Filter{})
		for i := range doc.Jobs {
			r.hear(&doc.Jobs[i], false)
		}
		return err
	})
}

// client submits jobs, of which some run, and cancels some.
func (r *recording) client(ctx context.Context, number int) {
	chance := rand.New(rand.NewPCG(3, uint64(number)))
	var mine []string
	r.ask(ctx, chance, func(c *api.Client, n int) error {
		if n%6 == 5 && len(mine) > 0 {
			name := mine[chance.IntN(len(mine))]
			j, err := c.Cancel(ctx, name)
			if err == nil {
				r.hear(&j, true)
			}
			return err
		}
		file := fmt.Sprintf("jobs: [{name: w%d-%d, command: [sleep, 1h], submit: 10h, count: 2}]", number, n)
		if n%3 == 0 {
			file = r.short(fmt.Sprintf("r%d-%d", number, n), chance)
		}
		in := r.submission(file)
		in.Inherit = map[string]string{"NUMBER": fmt.Sprint(number, n/8)}
		doc, err := c.Submit(ctx, in)
		for i, j := range doc.Jobs {
			if i == 0 {
				mine = append(mine, j.Name)
			}
			r.hear(&api.Job{ID: j.ID, Name: j.Name}, false)
		}
		return err
	})
}

// short is a job that runs for a moment; one in four fails, one in four lasts until it is preempted or cancelled.
func (r *recording) short(name string, chance *rand.Rand) string {
	command := []string{"true", "sleep 0.2; echo well", "exit 3", "sleep 2"}[chance.IntN(4)]
	return fmt.Sprintf("jobs: [{name: %s, gpus: %d, grace: 300ms, preemptible: true, inherit_env: true, "+
		"command: [sh, -c, %q]}]", name, 1+chance.IntN(2), command)
}

// settle waits until no job runs any more.
func (r *recording) settle() {
	for end := time.Now().Add(3 * patience); ; time.Sleep(50 * time.Millisecond) { // under strace all is slow
		ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
		doc, err := r.dial().Jobs(ctx, api.Filter{})
		cancel()
		busy := err != nil
		for i := range doc.Jobs {
			r.hear(&doc.Jobs[i], false)
			busy = busy || doc.Jobs[i].State != "done" && !strings.HasPrefix(doc.Jobs[i].Name, "w")
		}
		if !busy {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("jobs do not end: %v", err)
		}
	}
}
