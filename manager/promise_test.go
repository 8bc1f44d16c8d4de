package manager_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/sched"
)

// stopped serves until a first job runs, submits two more that wait, and stops.
func stopped(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, "fifo-skip", 1, "jobs: [{command: [x]}]")
	s := r.serve()
	s.submit(fmt.Sprintf("jobs: [{name: first, command: [sh, -c, 'until [ -e %s/go ]; do sleep 0.02; done']}]", r.dir))
	s.until(0, "running", runs)
	s.submit("jobs: [{name: second, command: ['true']}]")
	s.submit("jobs: [{name: third, command: ['true']}]")
	_ = s.stop()
	return r
}

// Promise 9: an event that contradicts all before it, and a job of which no one can read what it is, are quarantined
// and reported; the other jobs run. Where the event is not the last one, each manager says which it is, and none
// crashes.
func TestPromise09PoisonIsSetAside(t *testing.T) {
	t.Parallel()
	const last = "(select max(seq) from log)"
	// A row as a version with a fault might have written it: nothing says that it is damaged.
	const rewrite = "update log set sum = null, line = cast(replace(cast(line as text), '%s', '%s') as blob) where %s"
	third := `"event":"arrived","job":2`
	for _, c := range []struct {
		name, statement string
		want            string // the problem, or the error
		jobs            int    // that are left; 0 = refused
	}{
		{"contradiction at the end", fmt.Sprintf(rewrite, third, `"event":"ended","job":2`, "seq = "+last),
			"was quarantined: ", 2},
		{"no JSON at the end", "update log set sum = null, line = cast('oops' as blob) where seq = " + last,
			"was quarantined: ", 2},
		{"flipped at the end", "update log set line = cast(replace(cast(line as text), 'third', 'thirt') as blob) " +
			"where seq = " + last, "was quarantined: its checksum is wrong", 2},
		{"contradiction before it",
			fmt.Sprintf(rewrite, `"job":0`, `"job":77`, "cast(line as text) like '%\"decided\"%'"), "job 77", 0},
		{"flipped before it", "update log set batch = batch + 1 where seq = 3", "event 3 in trainyard.db is damaged: " +
			"its checksum is wrong", 0},
		{"unreadable task", fmt.Sprintf(rewrite, `"task":"`, `"task":"x`, "cast(line as text) like '%second%'"),
			"job 1 (second) cannot be started (", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := stopped(t)
			r.execute(c.statement)
			r.sums()
			if c.jobs == 0 {
				for range 2 {
					if m, err := manager.Open(t.Context(), r.options); err == nil ||
						!strings.Contains(err.Error(), c.want) {
						t.Errorf("%v, %v, want an error with %q", m, err, c.want)
					}
				}
				return
			}
			for range 2 { // and again
				s := r.serve()
				rows := s.m.Board().Rows()
				if len(rows) < c.jobs || !runs(&rows[0]) {
					t.Errorf("%+v, want %d with the first running", rows, c.jobs)
				}
				_ = s.stop()
			}
			s := r.serve()
			if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			s.until(0, "done", done)
			next := s.submit("jobs: [{command: ['true']}]")
			if row := s.until(next, "done", done); row.Outcome != sched.Finished {
				t.Errorf("a job that came later: %+v", row)
			}
			if list := s.m.Problems(); len(list) != 1 || !strings.Contains(list[0], c.want) {
				t.Errorf("problems %q, want one with %q", list, c.want)
			}
			_ = s.stop()
		})
	}
}

// hostile are jobs that are hard to end. MARK is in the command of each of their processes.
var hostile = map[string]string{
	"setsid":      `setsid sleep MARK & setsid sh -c 'sleep MARK & sleep MARK' & touch READY; wait`,
	"double fork": `(setsid sh -c 'sleep MARK & exec sleep MARK' &); touch READY; exec sleep MARK`,
	"deaf":        `trap "" TERM; sleep MARK & touch READY; while :; do sleep MARK; done`,
	"deaf bomb": `trap "" TERM; i=0; while [ $i -lt 60 ]; do setsid sleep MARK & i=$((i+1)); done; touch READY; ` +
		`sleep MARK; sleep MARK`,
	"stopped": `sleep MARK & kill -STOP $!; touch READY; kill -STOP $$; wait`,
	"breeder": `trap "" TERM; touch READY; while :; do (: MARK; sleep 1; :) & sleep 0.05; done`,
}

// Promise 5: when a job is said to be cancelled nothing of it is left, and its slot goes to the next job. (driver/local
// has the whole zoo, with shims killed; driver/local/device has the memory of cards.)
func TestPromise05GPUsComeBack(t *testing.T) {
	t.Parallel()
	s := newRig(t, "fifo-skip", len(hostile), "jobs: [{command: [x]}]").serve()
	n := 0
	for name, script := range hostile {
		n++
		mark, ready := fmt.Sprintf("36%03d.%07d", n, os.Getpid()), filepath.Join(s.dir, fmt.Sprint("ready-", n))
		script = strings.NewReplacer("MARK", mark, "READY", ready).Replace(script)
		t.Run(name, func(t *testing.T) {
			id := s.submit(fmt.Sprintf("jobs: [{grace: 500ms, command: [sh, -c, %q]}]", script))
			for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
				if _, err := os.Stat(ready); err == nil {
					break
				} else if time.Now().After(end) {
					t.Fatal("it does not get ready")
				}
			}
			asked := time.Now()
			if err := s.m.Command(t.Context(), id, sched.CancelJob); err != nil {
				t.Fatal(err)
			}
			s.until(id, "done", done)
			if left := marked(t, mark); len(left) > 0 {
				t.Errorf("left are %q", left)
			}
			t.Logf("all gone %v after cancel, grace 500ms", time.Since(asked).Round(time.Millisecond))
		})
	}
	all := s.submit(fmt.Sprintf("jobs: [{gpus: %d, command: ['true']}]", len(hostile)))
	if row := s.until(all, "done", done); row.Outcome != sched.Finished {
		t.Errorf("a job on all slots: %+v", row)
	}
}

// marked returns the commands of processes with a mark.
func marked(t *testing.T, mark string) (list []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(mark)) {
			list = append(list, string(b))
		}
	}
	return list
}

// Promise 9: where the start of an attempt is what was quarantined, the attempt is found as it runs; nothing starts
// twice.
func TestPromise09StartSetAside(t *testing.T) {
	t.Parallel()
	r := newRig(t, "fifo", 2, blocked)
	r.runUntil(sched.AttemptStarted, 0)
	r.execute("update log set batch = batch + 1 where seq = (select max(seq) from log)")
	m := r.open()
	r.finish(m)
	if list := m.Problems(); len(list) != 1 || rows(m) != allDone {
		t.Errorf("%s; problems %q; want %s and one", rows(m), list, allDone)
	}
	r.close(m)
	r.close(r.open()) // and again, of the whole log
}
