package simulate

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/internal/inputfile"
)

// Ensure that a request by paths has the outcome of the same request by values, and that Load reads nothing twice.
func TestPathsAreValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.csv")
	text := "job_id,submit_s,num_gpus,duration_s\nJ1,0,2,2\nJ2,0,1,8\nJ3,0,2,6\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	by := Request{From: Inputs{Trace: path, Cluster: "1x2"}, System: "las"}
	want := simulate(t, &Request{Trace: mustRead(t, path), Cluster: mustLoad(t, "1x2"), System: "las"})
	got := simulate(t, &by)
	if got.AvgJCT != want.AvgJCT || got.Makespan != want.Makespan || len(got.PerJob) != 3 || got.Engine != Engine {
		t.Errorf("%+v, want %+v", got.Result, want.Result)
	}
	if by.Trace != nil {
		t.Error("Run changed its request")
	}
	if err := by.Load(); err != nil {
		t.Fatal(err)
	}
	trace, cluster := by.Trace, by.Cluster
	if err := by.Load(); err != nil || by.Trace != trace || by.Cluster != cluster {
		t.Errorf("read again: %v", err)
	}
	seed := uint64(7)
	seeded := Request{From: Inputs{Trace: path, Cluster: "1x2", Seed: &seed}}
	if err := seeded.Load(); err != nil || seeded.Cluster.Failures.Seed != 7 || seeded.NoiseSeed != 7 {
		t.Errorf("%v, seeds %d and %d, want 7", err, seeded.Cluster.Failures.Seed, seeded.NoiseSeed)
	}
}

// Ensure that Check names the field that is wrong, and whether the request or a file must change.
func TestCheckNamesTheField(t *testing.T) {
	dir := t.TempDir()
	good := func() *Request {
		return &Request{Trace: traceOf(row{0, 1, 1}), Cluster: mustLoad(t, "1x2"), System: "fifo"}
	}
	for _, c := range []struct {
		field  string
		fault  inputfile.Fault
		change func(*Request)
	}{
		{"System", inputfile.None, func(r *Request) { r.System = "nothing" }},
		{"Settings", inputfile.None, func(r *Request) { r.Settings = map[string]string{"nothing": "1"} }},
		{"Settings", inputfile.None, func(r *Request) { r.Settings = map[string]string{"user_limit": "many"} }},
		{"Preset", inputfile.None, func(r *Request) { r.Preset = "nothing" }},
		{"Preset", inputfile.None, func(r *Request) { r.Preset, r.System = "tiresias", "boa" }},
		{"Trace", inputfile.None, func(r *Request) { r.Trace = nil }},
		{"Trace", inputfile.Damaged, func(r *Request) { r.Trace, r.From.Trace = nil, dir }},
		{"Cluster", inputfile.None, func(r *Request) { r.Cluster = nil }},
		{"Cluster", inputfile.Asked, func(r *Request) { r.Cluster, r.From.Cluster = nil, "seven" }},
		{"Round", inputfile.None, func(r *Request) { r.Round = -1 }},
		{"Scores", inputfile.None, func(r *Request) { r.Scores = alikeScores(3) }},
		{"Scores", inputfile.Damaged, func(r *Request) { r.From.Scores = dir }},
		{"Apps", inputfile.Asked, func(r *Request) { r.From.Apps = filepath.Join(dir, "none") }},
		{"Sharing", inputfile.Damaged, func(r *Request) { r.From.Sharing = dir }},
	} {
		r := good()
		c.change(r)
		err := r.Check()
		if named := (*Error)(nil); !errors.As(err, &named) || named.Field != c.field ||
			inputfile.FaultOf(err) != c.fault {
			t.Errorf("%s: %v (%+v), fault %d, want %d", c.field, err, named, inputfile.FaultOf(err), c.fault)
		}
	}
	if err := good().Check(); err != nil {
		t.Error(err)
	}
}
