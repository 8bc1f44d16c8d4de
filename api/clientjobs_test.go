package api

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// randomJob fills some fields of a job, found by reflection, so that those added later are among them.
func randomJob(r *rand.Rand) (j Job) {
	texts := []string{"a", "a-1", "müller …", "says \"no\"", "<b>&\u2028", "two\nlines", "bad \xff", `"jobs":[{"id":`,
		strings.Repeat("x", 300)}
	v := reflect.ValueOf(&j).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); r.IntN(3) > 0 {
			switch f.Kind() {
			case reflect.String:
				f.SetString(texts[r.IntN(len(texts))])
			case reflect.Int, reflect.Int64:
				f.SetInt(r.Int64() >> r.IntN(64))
			case reflect.Float64:
				f.SetFloat(r.NormFloat64() * 1e9)
			}
		}
	}
	for range r.IntN(3) {
		j.GPUs = append(j.GPUs, texts[r.IntN(len(texts))])
		j.Shares = append(j.Shares, r.IntN(9))
	}
	return j
}

// Ensure that a client returns the jobs that were written, whatever stands in them and however they are set.
func TestReadJobs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var text []byte
	dir := t.TempDir()
	stop := serveAt(t, dir, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) })
	defer stop()
	c, err := Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for n := range 100 {
		in := Jobs{Schema: "trainyard.jobs/v1", Now: "now", System: "fifo", Total: n}
		for range r.IntN(20) {
			in.Jobs = append(in.Jobs, randomJob(r))
		}
		if text, err = json.Marshal(in); err != nil {
			t.Fatal(err)
		}
		if n%3 == 0 {
			text, _ = json.MarshalIndent(in, "", " ") // as another server may write it
		}
		var want Jobs
		if err = json.Unmarshal(text, &want); err != nil { // bytes that are no UTF-8 have become U+FFFD
			t.Fatal(err)
		}
		if got, err := c.Jobs(t.Context(), Filter{}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", text, got, err, want)
		}
	}
}

// known is what a manager reports of n jobs, most of which wait.
func known(n int) Jobs {
	doc := Jobs{Schema: "trainyard.jobs/v1", Now: "2026-11-22T08:45:06.929Z", System: "fifo", Total: n,
		Jobs: make([]Job, n)}
	for i := range doc.Jobs {
		j := Job{ID: i, Name: fmt.Sprintf("waits-%d", i), User: "someone", State: "waiting",
			Why: fmt.Sprintf("needs 1 slot, and 0 of 64 are free; %d jobs are ahead", i),
			Min: 1, Want: 1, Max: 1, GPUs: []string{}, Submitted: "2026-11-22T08:44:09.413Z", QueueSec: 57.51575599}
		switch i % 8 {
		case 0:
			j.State, j.GPUs, j.Attempt, j.Started, j.RunSec, j.Speed, j.Step, j.Why = "running", []string{"slot-1"}, 1,
				j.Submitted, 12.5, 0.75, 1234, ""
		case 1:
			j.State, j.Outcome, j.ExitCode, j.Ended, j.GPUSeconds = "done", "failed", 3, j.Submitted, 4.25
		}
		doc.Jobs[i] = j
	}
	return doc
}

// BenchmarkReadJobs is what a client does with a list of 10,000 jobs.
func BenchmarkReadJobs(b *testing.B) {
	text, err := json.Marshal(known(10_000))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := json.Unmarshal(text, new(Jobs)); err != nil {
			b.Fatal(err)
		}
	}
}
