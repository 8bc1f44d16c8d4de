package kept

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// littered is a state folder with the leftovers of jobs, some of which are hostile, and a file outside that must stay.
type littered struct {
	*testing.T
	state, outside string
}

func newLittered(t *testing.T) *littered {
	t.Helper()
	x := &littered{t, filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "outside")}
	x.write(filepath.Join(x.outside, "precious"))
	for _, path := range []string{"0/1/output.log", "0/1/order.json", "0/1/sub/deep", "0/2/output.log", "0/lock",
		"0/checkpoint/step-9", "1/1/output.log", "1/lock", "2/1/ckpt/step-3", "2/1/output.log", "3/1/order.json",
		"3/x1/output.log", "3/07/output.log"} {
		x.write(filepath.Join(x.state, "jobs", path))
	}
	for name, to := range map[string]string{"0/1/link": x.outside, "0/1/sub/file": filepath.Join(x.outside, "precious"),
		"3/1/output.log": filepath.Join(x.outside, "precious"), "3/2": x.outside, "3/3": "../0/1", "4": x.outside,
		"5": "1"} {
		if err := os.Symlink(to, filepath.Join(x.state, "jobs", name)); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func (x *littered) write(path string) {
	x.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		x.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 5000)), 0o600); err != nil {
		x.Fatal(err)
	}
}

// there lists the files below the folders of jobs that are left, and those outside.
func (x *littered) there() (list []string) {
	for _, root := range []string{filepath.Join(x.state, "jobs"), x.outside} {
		_ = filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() {
				rel, _ := filepath.Rel(filepath.Dir(root), path)
				list = append(list, strings.TrimPrefix(rel, "jobs/"))
			}
			return nil
		})
	}
	return list
}

// all has a removal look at every job, and returns what it says.
func (x *littered) all(r Removal) api.Cleaned {
	x.Helper()
	var doc api.Cleaned
	r.Dir = x.state
	for id := range sched.JobID(7) {
		if err := r.Job(id, &doc); err != nil && id != 4 && id != 5 {
			x.Error(err)
		}
	}
	return doc
}

// Ensure that outputs, or run folders, are removed and nothing else: no checkpoint, nothing behind a link, nothing of a
// job whose shim lives, and nothing at all where it is only said what would be.
func TestRemoval(t *testing.T) {
	links := []string{"0/1/link", "0/1/sub/file", "3/1/output.log", "3/2", "3/3", "4", "5"}
	for _, c := range []struct {
		name           string
		r              Removal
		gone           []string
		attempts, left int
	}{
		{"outputs", Removal{}, []string{"0/1/output.log", "0/2/output.log", "2/1/output.log"}, 3, 2},
		{"runs", Removal{Runs: true}, []string{"0/1/output.log", "0/1/order.json", "0/1/sub/deep", "0/2/output.log",
			"3/1/order.json", "0/1/link", "0/1/sub/file", "3/1/output.log"}, 3, 2},
		{"dry", Removal{Runs: true, Dry: true}, nil, 3, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newLittered(t)
			c.r.Keep = []string{filepath.Join(x.state, "jobs/2/1/ckpt")}
			held, err := shim.Lock(filepath.Join(x.state, "jobs/1/lock"), false)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			before := x.there()
			if !slices.Contains(before, "outside/precious") || !slices.Contains(before, links[0]) {
				t.Fatalf("%v", before)
			}
			doc := x.all(c.r)
			after := x.there()
			var gone []string
			for _, name := range before {
				if !slices.Contains(after, name) {
					gone = append(gone, name)
				}
			}
			slices.Sort(gone)
			slices.Sort(c.gone)
			if !slices.Equal(gone, c.gone) || doc.Attempts != c.attempts || len(doc.Left) != c.left ||
				doc.Bytes < 5000 {
				t.Errorf("gone %v, want %v\n%+v", gone, c.gone, doc)
			}
			again := x.all(c.r)
			if !c.r.Dry && (again.Attempts != 0 || again.Bytes != 0) {
				t.Errorf("again: %+v", again)
			}
		})
	}
}
