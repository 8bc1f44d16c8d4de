package record_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// hostile returns values that whoever edits a record may write.
func hostile() []any {
	return []any{nil, true, -1, 0, 1, 2, 7, 255, 1 << 20, 1e18, -1e18, 0.5, "", "a/0", "none/7", "a/-1", "/", []any{},
		map[string]any{}, []any{-1}, []any{1e6}, []any{"a/0", "a/0"}}
}

// spoil changes one place of a JSON value, at random.
func spoil(r *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 || r.IntN(12) == 0 {
			break
		}
		n := r.IntN(len(v))
		for key := range v { // in an order that differs: each run tries others
			if n--; n < 0 {
				if r.IntN(10) == 0 {
					delete(v, key)
				} else {
					v[key] = spoil(r, v[key])
				}
				return v
			}
		}
	case []any:
		if len(v) > 0 && r.IntN(6) > 0 {
			i := r.IntN(len(v))
			v[i] = spoil(r, v[i])
			return v
		}
	}
	values := hostile()
	return values[r.IntN(len(values))]
}

// Ensure that no record, whatever stands in it, ends the process or keeps the others from going on: what Read takes the
// engine takes, and Read takes those of no one else.
func TestHostileRecords(t *testing.T) {
	files, err := filepath.Glob("testdata/frozen/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	r := rand.New(rand.NewPCG(26, uint64(len(files))))
	taken, refused := 0, 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var f frozen
		if err := json.Unmarshal(b, &f); err != nil {
			t.Fatal(err)
		}
		var c record.Cluster
		if err := json.Unmarshal(f.Cluster, &c); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			jobs := f.spoilt(t, r)
			taken, refused = taken+len(jobs), refused+len(f.Jobs)-len(jobs)
			f.restore(t, jobs, c)
		}
	}
	if taken < 500 || refused < 500 {
		t.Errorf("%d records are taken and %d refused, want many of both", taken, refused)
	}
}

// spoilt returns the jobs that can be read once some of the records have been changed, of each number the first, as
// leaders do.
func (f *frozen) spoilt(t *testing.T, r *rand.Rand) (jobs []record.Job) {
	t.Helper()
	seen := make(map[sched.JobID]bool)
	for _, line := range f.Jobs {
		if r.IntN(2) == 0 {
			var v any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			for range 1 + r.IntN(3) {
				v = spoil(r, v)
			}
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			line = string(text)
		}
		j, err := record.Read(line)
		if err != nil || int(j.ID) >= 2*len(f.Jobs) || seen[j.ID] { // the last two are what leaders see to
			continue
		}
		seen[j.ID] = true
		jobs = append(jobs, j)
	}
	return jobs
}

// restore makes an engine's state of jobs and a cluster.
func (f *frozen) restore(t *testing.T, jobs []record.Job, c record.Cluster) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("panic: %v; of %+v", p, lines(jobs))
		}
	}()
	v, _, err := record.View(jobs, c, f.Now, f.Version, len(f.Jobs))
	if err != nil {
		t.Fatalf("%v; of %q", err, lines(jobs))
	}
	r, err := eventlog.NewReader(strings.NewReader(f.Header+"\n"), "header")
	if err != nil {
		t.Fatal(err)
	}
	s, err := engine.Restore(r.Header(), v)
	if err != nil {
		t.Fatalf("%v; of %q", err, lines(jobs))
	}
	now := s.View()
	for id := range now.Jobs {
		j := record.Of(now, sched.JobID(id), 8)
		if _, bad := record.Read(j.String()); bad != nil && j.Job.Spec.Task != "" {
			t.Fatalf("what was taken cannot be read again: %v: %s", bad, j.String())
		}
		_ = record.Extract(now, sched.JobID(id), "dra-pinned", nil)
	}
}

func lines(jobs []record.Job) (list []string) {
	for i := range jobs {
		list = append(list, jobs[i].String())
	}
	return list
}
