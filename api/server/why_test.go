package server

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// Ensure that why, resize, explain and a dry run say what they promise over the wire, and that the command of a remedy
// does it.
func TestWhyOverTheWire(t *testing.T) {
	t.Parallel()
	r := newRig(t, 4, nil)
	seq := r.decided()
	jobs := r.submit("jobs: [{name: a, gpus: 3, command: [sleep, 1h]}, {name: b, gpus: 2, command: [sleep, 1h]}]")
	a, b := jobs[0].ID, strconv.Itoa(jobs[1].ID)
	var doc api.Why
	var err error
	for doc.Code != "busy" {
		if doc, err = r.client.Why(t.Context(), "b", 3*time.Second, 3*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	want := fmt.Sprintf("needs 2 slots, 1 is free, 3 held by job %d (a) until ", a)
	if doc.Schema != "trainyard.why/v1" || !strings.HasPrefix(doc.Sentence, want) ||
		doc.Job.Why != "needs 2 slots, 1 is free" || doc.Start == nil || doc.Draws == 0 {
		t.Errorf("%+v, want %s", doc, want)
	}
	if len(doc.Remedies) == 0 || doc.Remedies[0].Command != "trainyard resize "+b+" --gpus 1" ||
		doc.Remedies[0].Resize == nil {
		t.Fatalf("%+v, want fewer slots to do", doc.Remedies)
	}
	dry, err := r.client.Submit(t.Context(), api.Submission{File: "jobs: [{command: [x]}]", Dir: "/", Dry: true})
	if err != nil || len(dry.Jobs) != 1 || dry.Jobs[0].Start == nil || dry.Jobs[0].ID != -1 {
		t.Errorf("%+v, %v, want an estimate", dry, err)
	}
	if job, bad := r.client.Resize(t.Context(), "b", *doc.Remedies[0].Resize); bad != nil || job.Min != 1 ||
		job.Max != 1 {
		t.Errorf("%+v, %v, want 1 slot asked for", job, bad)
	}
	for doc.Code != "" {
		if doc, err = r.client.Why(t.Context(), "b", 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []api.Resize{{}, {Min: 2, Max: 1}, {Max: 1 << 30}, {Max: 5, Min: 5}} {
		if _, bad := r.client.Resize(t.Context(), "b", x); !errors.Is(bad, api.ErrMalformed) && !errors.Is(bad,
			api.ErrRefused) {
			t.Errorf("%+v: %v, want it refused", x, bad)
		}
	}
	d, err := r.client.Explain(t.Context(), seq)
	if err != nil || d.Event != "decided" || len(d.GPUs) != 1 || len(d.Chosen) != 1 ||
		d.Reason.Text != "it was its turn and it fits" {
		t.Errorf("%+v, %v, want a decision", d, err)
	}
	if _, err = r.client.Explain(t.Context(), 1<<50); !errors.Is(err, api.ErrNoEvent) {
		t.Errorf("%v, want %v", err, api.ErrNoEvent)
	}
	if _, err = r.client.Explain(t.Context(), 1); !errors.Is(err, api.ErrNoDecided) {
		t.Errorf("%v, want %v", err, api.ErrNoDecided)
	}
}

// Ensure that why counts the jobs of a higher class, under systems of each kind that go by classes, and says nothing of
// them to who is first.
func TestWhyNamesTheClass(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"fifo", "las", "elastic", "eaco"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			r := newRigOf(t, system, 1, nil, map[string]string{"priority": "classes"})
			r.submit("defaults: {command: [sleep, 1h], model: m, epochs: 9, preemptible: 'false'}\njobs:\n" +
				"- {name: runs}\n")
			ends := func(job, want string) {
				t.Helper()
				var doc api.Why
				for end := time.Now().Add(waitLong); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
					var err error
					if doc, err = r.client.Why(t.Context(), job, 0, 0); err != nil {
						t.Fatal(err)
					}
					named := strings.Contains(doc.Sentence, " ahead")
					if strings.HasSuffix(doc.Sentence, want) && named == (want != "") &&
						(doc.Code == "") == (job == "runs") {
						return
					}
				}
				t.Errorf("%s: %q (%s), want %q at its end", job, doc.Sentence, doc.Code, want)
			}
			for {
				if j, err := r.client.Job(t.Context(), "runs"); err != nil || j.State == "running" {
					break
				}
			}
			r.submit("defaults: {command: [sleep, 1h], model: m, epochs: 9}\njobs: [{name: low}, " +
				"{name: mid, priority: 1}, {name: high, priority: 5}, {name: held, priority: 5, submit: 1h}]")
			ends("runs", "")
			ends("high", "")
			ends("mid", "; 1 job of a higher priority class is ahead")
			ends("low", "; 2 jobs of a higher priority class are ahead")
		})
	}
}
