package api_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// managerThat is a client of a server that does as f says.
func managerThat(t *testing.T, f http.HandlerFunc) *api.Client {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "control"))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: f, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return dialled(t, dir)
}

func dialled(t *testing.T, dir string) *api.Client {
	t.Helper()
	c, err := api.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// says answers with a problem.
func says(w http.ResponseWriter, err error) {
	p := api.ProblemOf(err)
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	fmt.Fprintf(w, `{"title":"x","status":%d,"detail":%q,"code":%q}`, p.Status, p.Detail, p.Code)
}

// hangUp breaks the connection without an answer.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

const job = `{"schema":"trainyard.submitted/v1","jobs":[{"id":7,"name":"a"}]}`

// Ensure that a submission is asked for again, under the same key, after each way in which a manager can fail to
// answer, and not after an answer.
func TestSubmitOnceAsksAgain(t *testing.T) {
	for name, fails := range map[string]func(w http.ResponseWriter){
		"hangs up":    hangUp,
		"stops":       func(w http.ResponseWriter) { says(w, api.ErrStopped) },
		"is late":     func(w http.ResponseWriter) { says(w, api.ErrTimeout) },
		"is busy":     func(w http.ResponseWriter) { says(w, api.ErrBusy) },
		"leads not":   func(w http.ResponseWriter) { says(w, api.ErrNotLeading) },
		"breaks off":  func(w http.ResponseWriter) { _, _ = w.Write([]byte(job[:20])); hangUp(w) },
		"half a text": func(w http.ResponseWriter) { _, _ = w.Write([]byte(job[:20])) },
		"other words": func(w http.ResponseWriter) { http.Error(w, "bad gateway", http.StatusBadGateway) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			c := managerThat(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Idempotency-Key") != "k" {
					t.Errorf("header %v", r.Header)
				}
				if asked.Add(1) <= 2 {
					fails(w)
					return
				}
				_, _ = w.Write([]byte(job))
			})
			reported := 0
			doc, err := c.SubmitOnce(t.Context(), api.Submission{File: "x"}, "k", api.Retry{Patience: time.Minute,
				Again: func(error, bool) bool { reported++; return true }})
			if err != nil || len(doc.Jobs) != 1 || doc.Jobs[0].ID != 7 || reported != 1 {
				t.Errorf("%+v, %v after %d requests, reported %d times", doc, err, asked.Load(), reported)
			}
		})
	}
	for _, definite := range []error{api.ErrKeyUsed, api.ErrRefused, api.ErrMalformed, api.ErrForbidden, api.ErrFixed} {
		asked := 0
		c := managerThat(t, func(w http.ResponseWriter, _ *http.Request) { asked++; says(w, definite) })
		_, err := c.SubmitOnce(t.Context(), api.Submission{}, "k", api.Retry{Patience: time.Minute})
		if !errors.Is(err, definite) || errors.Is(err, api.ErrUnknown) || asked != 1 {
			t.Errorf("%v after %d requests, want %v at once", err, asked, definite)
		}
	}
}

// Ensure that the outcome is said to be unknown where a manager may have the jobs, and only there.
func TestSubmitOnceOutcome(t *testing.T) {
	once := api.Retry{}
	alone := t.TempDir()
	if err := os.WriteFile(filepath.Join(alone, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := dialled(t, alone)
	_, err := c.SubmitOnce(t.Context(), api.Submission{}, "k", once)
	if !errors.Is(err, api.ErrNoManager) || errors.Is(err, api.ErrUnknown) {
		t.Errorf("no one there: %v", err)
	}
	for name, x := range map[string]struct {
		f       func(w http.ResponseWriter)
		unknown bool
	}{
		"hangs up":  {hangUp, true},
		"stops":     {func(w http.ResponseWriter) { says(w, api.ErrStopped) }, true},
		"is late":   {func(w http.ResponseWriter) { says(w, api.ErrTimeout) }, true},
		"is busy":   {func(w http.ResponseWriter) { says(w, api.ErrBusy) }, false},
		"leads not": {func(w http.ResponseWriter) { says(w, api.ErrNotLeading) }, false},
	} {
		c = managerThat(t, func(w http.ResponseWriter, _ *http.Request) { x.f(w) })
		_, err = c.SubmitOnce(t.Context(), api.Submission{}, "k", once)
		if err == nil || errors.Is(err, api.ErrUnknown) != x.unknown {
			t.Errorf("%s: %v, want unknown %v", name, err, x.unknown)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	c = managerThat(t, func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	_, err = c.SubmitOnce(ctx, api.Submission{}, "k", api.Retry{Patience: time.Minute})
	if !errors.Is(err, api.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// Ensure that a host that knows no keys is asked once more, without one, and never again.
func TestSubmitOnceWithoutKeys(t *testing.T) {
	var asked atomic.Int32
	c := managerThat(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Idempotency-Key") != "" {
			says(w, api.NotHere("Idempotency-Key", ""))
			return
		}
		hangUp(w)
	})
	_, err := c.SubmitOnce(t.Context(), api.Submission{}, "k", api.Retry{Patience: time.Minute})
	if !errors.Is(err, api.ErrNoManager) || asked.Load() != 2 {
		t.Errorf("%v after %d requests", err, asked.Load())
	}
}

// Ensure that only keys are taken for keys.
func TestCheckKey(t *testing.T) {
	for key, good := range map[string]bool{"": false, "a": true, "0123-45:67.8_9AZaz": true, "a b": false, "a\n": false,
		"ä": false, "a/b": false, strings.Repeat("k", 64): true, strings.Repeat("k", 65): false, `"`: false} {
		if err := api.CheckKey(key); (err == nil) != good || err != nil && !errors.Is(err, api.ErrMalformed) {
			t.Errorf("%q: %v", key, err)
		}
	}
}
