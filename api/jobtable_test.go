package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// listed is what a table has of a job, as a document of jobs has it.
func listed(t *testing.T, j *Job) Job {
	t.Helper()
	b, err := json.Marshal(Job{ID: j.ID, Name: j.Name, User: j.User, Group: j.Group, State: j.State, Outcome: j.Outcome,
		Why: j.Why, Min: j.Min, Max: j.Max, GPUs: append([]string{}, j.GPUs...), QueueSec: j.QueueSec, RunSec: j.RunSec,
		Array: j.Array, Start: j.Start, Class: j.Class, Priority: j.Priority})
	if err != nil {
		t.Fatal(err)
	}
	var out Job
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Ensure that a table has of each job what a document has, whatever stands in it.
func TestReadTable(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	var in, want []Job
	for i := range 500 {
		j := randomJob(r)
		j.GPUs = []string{"slot-0", "GPU-1/2"}[:r.IntN(3)]
		if i%3 == 0 {
			j.Array = &Task{First: 7, Index: i, Size: 500, AtOnce: i % 2}
		}
		if i%4 == 0 {
			j.Start = &Within{Known: i%8 == 0, Alone: i%3 == 0}
		}
		if i%16 == 0 {
			j.Start.Low, j.Start.Median, j.Start.High = "2026-11-22T08:45:06.929Z", "2026-11-22T09:45:06.929Z", ""
		}
		in, want = append(in, j), append(want, listed(t, &j))
	}
	var b bytes.Buffer
	if err := WriteTable(&b, in); err != nil {
		t.Fatal(err)
	}
	got, err := ReadTable(&b, 3)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d jobs, %v, want %d", len(got), err, len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("job %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
}

// Ensure that a table of a later version is read, and that what is none or is damaged is an error that says where.
func TestReadTableOfOthers(t *testing.T) {
	t.Parallel()
	got, err := ReadTable(strings.NewReader("later,state,id\nx,waiting,4\n\"a,b\",done,5\n"), -1)
	if want := []Job{{ID: 4, State: "waiting", GPUs: []string{}},
		{ID: 5, State: "done", GPUs: []string{}}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for text, want := range map[string]string{"": "no table", "<html>\n": "no table", "id,state\n1\n": "fields",
		"id,state\n1,\"wait": `"`, "id,state\n1,x\ny,x\n": "line 3, column 1, id", "id,array\n1,2 3\n": "array",
		"id,start\n1,perhaps\n": "start", "id,queue_s\n1,\n": "queue_s"} {
		if got, err := ReadTable(strings.NewReader(text), 1<<60); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", text, got, err, want)
		}
	}
}

// Ensure that the client reads a table with what stands in its headers, asks a manager from before there were any for a
// document, and takes no table that is cut off for whole.
func TestClientTable(t *testing.T) {
	t.Parallel()
	all := known(50)
	answer := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("state") != "done" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.Header().Set(UnitHeader, "slot")
		w.Header().Set(NowHeader, all.Now)
		w.Header().Set(ListedHeader, "50")
		_ = WriteTable(w, all.Jobs)
	}
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		check  func(Jobs, error) error
	}{
		"table": {answer, func(doc Jobs, err error) error {
			if err != nil || doc.Unit != "slot" || doc.Now != all.Now || len(doc.Jobs) != 50 ||
				!reflect.DeepEqual(doc.Jobs[9], listed(t, &all.Jobs[9])) {
				return fmt.Errorf("%+v, %w", doc, err)
			}
			return nil
		}},
		"earlier": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/jobs" {
				_ = json.NewEncoder(w).Encode(&all)
				return
			}
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(Refusal(http.StatusNotFound, "no such path, see /openapi.json"))
		}, func(doc Jobs, err error) error {
			if err != nil || !reflect.DeepEqual(doc, all) {
				return fmt.Errorf("%+v, %w", doc, err)
			}
			return nil
		}},
		"cut": {func(w http.ResponseWriter, r *http.Request) {
			answer(w, r)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, func(doc Jobs, err error) error {
			if !errors.Is(err, ErrNoManager) || !errors.Is(err, io.ErrUnexpectedEOF) {
				return fmt.Errorf("%d jobs, %w, want an unexpected end", len(doc.Jobs), err)
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			stop := serveAt(t, dir, c.handle)
			defer stop()
			client, err := Dial(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if bad := c.check(client.Table(t.Context(), Filter{States: []string{"done"}})); bad != nil {
				t.Error(bad)
			}
		})
	}
}

// BenchmarkReadTable is BenchmarkReadJobs for a table.
func BenchmarkReadTable(b *testing.B) {
	var text bytes.Buffer
	if err := WriteTable(&text, known(10_000).Jobs); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadTable(bytes.NewReader(text.Bytes()), 10_000); err != nil {
			b.Fatal(err)
		}
	}
}
