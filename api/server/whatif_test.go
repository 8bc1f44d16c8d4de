package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// simulate is what this binary does as trainyard whatif: under las it goes on until it is killed.
func simulate(args []string) {
	fmt.Fprintln(os.Stderr, `{"simulated":1,"of":2,"system":"fifo"}`)
	switch {
	case strings.Contains(strings.Join(args, " "), "las"):
		time.Sleep(time.Hour)
	case strings.Contains(strings.Join(args, " "), "srtf"):
		fmt.Fprintln(os.Stderr, "whatif: the log has no nodes")
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"schema": "trainyard.whatif/v1", "args": args})
}

// become asks about a question until it stands so.
func (r *rig) become(id, state string) api.WhatIf {
	r.Helper()
	for end := time.Now().Add(waitLong); ; time.Sleep(10 * time.Millisecond) {
		doc, err := api.WhatIfsOf(r.client).Get(r.Context(), id)
		if err != nil {
			r.Fatal(err)
		}
		if doc.State == state {
			return doc
		}
		if doc.State != api.WhatIfRunning || time.Now().After(end) {
			r.Fatalf("%+v, want it %s", doc, state)
		}
	}
}

// eventually waits until f is true.
func (r *rig) eventually(what string, f func() bool) {
	r.Helper()
	for end := time.Now().Add(waitLong); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("not: %s", what)
		}
	}
}

// until waits until a job stands so.
func (r *rig) until(job, state string) {
	r.Helper()
	r.eventually(job+" is "+state, func() bool {
		j, err := r.client.Job(r.Context(), job)
		if err != nil {
			r.Fatal(err)
		}
		return j.State == state
	})
}

// Ensure that a question is answered by another process, once for the same log and again after something happened; that
// one runs at a time, is killed when it is taken back, and says why it failed.
func TestWhatIf(t *testing.T) {
	r := newRig(t, 1, nil)
	r.submit(later) // what it starts with is in the log
	ask := api.WhatIfsOf(r.client)
	first, err := ask.Ask(t.Context(), api.WhatIfQuestion{Systems: []string{"fifo"}})
	if err != nil || first.State != api.WhatIfRunning || first.ID == "" {
		t.Fatalf("%+v, %v, want it running", first, err)
	}
	done := r.become(first.ID, api.WhatIfDone)
	if !strings.Contains(string(done.Result), `"--system","fifo"`) || done.Of != 2 || done.Done != 2 {
		t.Errorf("%+v: %s, want the document of the process", done, done.Result)
	}
	again, err := ask.Ask(t.Context(), api.WhatIfQuestion{Systems: []string{"fifo"}})
	if err != nil || again.ID != first.ID || !bytes.Equal(again.Result, done.Result) {
		t.Errorf("%+v, %v, want the answer of %s", again, err, first.ID)
	}
	r.submit(later)
	slow, err := ask.Ask(t.Context(), api.WhatIfQuestion{Systems: []string{"las"}})
	if err != nil || slow.Seq <= first.Seq {
		t.Fatalf("%+v, %v, want one of a longer log than %d", slow, err, first.Seq)
	}
	if _, err = ask.Ask(t.Context(), api.WhatIfQuestion{Systems: []string{"fifo"}}); !errors.Is(err, api.ErrBusy) {
		t.Errorf("a second at a time: %v", err)
	}
	if doc, bad := ask.Cancel(t.Context(), slow.ID); bad != nil || doc.State != api.WhatIfCancelled {
		t.Errorf("%+v, %v, want it cancelled", doc, bad)
	}
	fresh, err := ask.Ask(t.Context(), api.WhatIfQuestion{Systems: []string{"srtf"}})
	if err != nil {
		t.Fatal(err)
	}
	if doc := r.become(fresh.ID, api.WhatIfFailed); doc.Error != "whatif: the log has no nodes" {
		t.Errorf("%+v, want what the process said", doc)
	}
	for _, systems := range [][]string{{"no-such"}, {"fifo", "fifo"}, {"fifo,las"}, {"--log=/etc/passwd"}, {""}} {
		if _, err = ask.Ask(t.Context(), api.WhatIfQuestion{Systems: systems}); !errors.Is(err, api.ErrMalformed) {
			t.Errorf("systems %q: %v, want them refused", systems, err)
		}
	}
}

// Ensure that a remedy of why is tried again and carried out, and that one that helps no more is refused, as one is of
// a job that does not stand as it was seen.
func TestRemedyIsTriedAgain(t *testing.T) {
	r := newRig(t, 3, nil)
	r.submit("jobs: [{name: wide, gpus: 2, command: [sleep, 1h]}]")
	r.until("wide", "running")
	r.submit("jobs: [{name: waits, gpus: 2, command: [sleep, 1h]}]")
	var doc api.Why
	r.eventually("a remedy is known", func() bool {
		var err error
		if doc, err = r.client.Why(t.Context(), "waits", 0, time.Second); err != nil {
			t.Fatal(err)
		}
		return len(doc.Remedies) > 0
	})
	id := doc.Remedies[0].ID
	if id != "gpus:1" {
		t.Fatalf("%+v, want one that takes fewer slots", doc.Remedies)
	}
	if _, err := r.client.Remedy(t.Context(), "waits", "gpus:3"); !errors.Is(err, api.ErrNoHelp) ||
		!strings.Contains(err.Error(), `remedy "gpus:3" no longer helps`) {
		t.Errorf("%v, want it refused: no longer helps", err)
	}
	path, body := fmt.Sprintf("/v1/jobs/%d/remedy", doc.Job.ID), fmt.Appendf(nil, `{"id": %q}`, id)
	resp, err := r.client.Do(t.Context(), http.MethodPost, path, body, http.Header{"If-Match": {`"7-running"`}})
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, api.ErrChanged) {
		t.Errorf("of a job that stands otherwise than it was seen: %v, want %v", err, api.ErrChanged)
	}
	if j, failed := r.client.Job(t.Context(), "waits"); failed != nil || j.State != "waiting" || j.Min != 2 {
		t.Errorf("%+v, %v, want it to wait for 2", j, failed)
	}
	used, err := r.client.Remedy(t.Context(), "waits", id)
	if err != nil || used.Remedy.ID != id || used.Schema != "trainyard.remedied/v1" {
		t.Fatalf("%+v, %v", used, err)
	}
	r.until("waits", "running")
	if _, err = r.client.Remedy(t.Context(), "waits", id); !errors.Is(err, api.ErrNoHelp) {
		t.Errorf("of a job that runs: %v, want it refused", err)
	}
}
