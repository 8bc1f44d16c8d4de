package record_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// frozen is what objects hold between two batches, as an earlier version wrote it: the records of jobs, in the status
// of each TrainingJob with the job's share of what the system remembers; the cluster and the rest, in ConfigMaps. The
// states are those of logs of real processes: of jobs that run, wait, were preempted, resized, failed and finished.
type frozen struct {
	Header  string // of the log
	Now     sched.Time
	Version uint64
	Jobs    []string
	Cluster json.RawMessage
	Memory  [][]byte
	Rest    []byte
}

// Ensure that records, clusters and memories which an earlier version wrote are read, and written again byte for byte
// in the schema after theirs, which was 1 then and had no evidence and no losses.
func TestFrozen(t *testing.T) {
	files, err := filepath.Glob("testdata/frozen/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v, %d files, want at least 5", err, len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var f frozen
			if err := json.Unmarshal(b, &f); err != nil {
				t.Fatal(err)
			}
			f.check(t)
		})
	}
}

func (f *frozen) check(t *testing.T) {
	t.Helper()
	r, err := eventlog.NewReader(strings.NewReader(f.Header+"\n"), "header")
	if err != nil {
		t.Fatal(err)
	}
	h := r.Header()
	sys, err := system.Live(&h, system.Knowledge{})
	if err != nil {
		t.Fatal(err)
	}
	v, origin := f.view(t, h)
	m := memory.Memory{Jobs: f.Memory, Rest: f.Rest}
	if err := m.Load(v, sys.Decider); err != nil {
		t.Fatal(err)
	}
	for id := range f.Jobs {
		j := record.Of(v, sched.JobID(id), 7)
		if got := j.In(2); got != strings.Replace(f.Jobs[id], `{"Schema":1,`, `{"Schema":2,`, 1) {
			t.Errorf("record of job %d:\n got %s\nwant %s", id, got, f.Jobs[id])
		}
		if got := memory.SaveJob(sys.Decider, sched.JobID(id)); !bytes.Equal(got, f.Memory[id]) {
			t.Errorf("memory of job %d:\n got %q\nwant %q", id, got, f.Memory[id])
		}
	}
	if got := memory.SaveRest(sys.Decider); !bytes.Equal(got, f.Rest) {
		t.Errorf("memory of the rest:\n got %q\nwant %q", got, f.Rest)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, f.Cluster); err != nil {
		t.Fatal(err)
	}
	if got := unpacked(t, record.ClusterOf(v, origin)); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("cluster:\n got %s\nwant %s", got, want.Bytes())
	}
}

// view reads the records and the cluster, and returns the state with time 0.
func (f *frozen) view(t *testing.T, h eventlog.Header) (*sched.View, time.Time) {
	t.Helper()
	var jobs []record.Job
	for _, line := range f.Jobs {
		j, err := record.Read(line)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(f.Cluster); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	_, c, err := record.ReadHead(packed.Bytes())
	if err != nil || c == nil {
		t.Fatal(c, err)
	}
	v, mended, err := record.View(jobs, *c, f.Now, f.Version, len(jobs))
	if err != nil || len(mended) > 0 {
		t.Fatalf("%v, mended %q", err, mended)
	}
	s, err := engine.Restore(h, v)
	if err != nil {
		t.Fatal(err)
	}
	return s.View(), c.Origin
}

// unpacked returns the JSON of a packed cluster.
func unpacked(t *testing.T, c record.Cluster) []byte {
	t.Helper()
	packed, err := c.Pack()
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b)
}

// Ensure that records of the schemas since then, of jobs with evidence, losses and requests about being stopped, and of
// one on many GPUs of several nodes, are read and written again byte for byte. A schema that comes after them gets a
// file of its own.
func TestGoldens(t *testing.T) {
	for schema := 2; schema <= record.JobSchema; schema++ {
		t.Run(strconv.Itoa(schema), func(t *testing.T) { golden(t, schema) })
	}
}

func golden(t *testing.T, schema int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("testdata/schema-%d.jsonl", schema))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) < 3 {
		t.Fatalf("%d records, want at least 3", len(lines))
	}
	for _, line := range lines {
		j, err := record.Read(line)
		if err != nil || j.Schema != schema {
			t.Fatalf("%v: %s", err, line)
		}
		if got := j.In(schema); got != line {
			t.Errorf("got %s\nwant %s", got, line)
		}
	}
}
