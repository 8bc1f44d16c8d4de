package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// patient is how long a test waits for what must come, on however busy a machine.
const patient = time.Minute

// Ensure that an absence is borne up to its limit, reported once each, and not at all before a manager was met.
func TestAbsence(t *testing.T) {
	t.Parallel()
	reported := 0
	a := absence{limit: time.Minute, begun: func() { reported++ }}
	start := time.Now()
	for i, x := range []struct {
		err      error
		after    time.Duration
		borne    bool
		reported int
	}{
		{ErrNoManager, 0, false, 0}, // none was met
		{ErrNoJob, 0, false, 0},
		{fmt.Errorf("dir: %w", ErrNoManager), 0, true, 1},
		{ErrStopped, 59 * time.Second, true, 1},
		{nil, 59 * time.Second, false, 1},
		{ErrStopped, 70 * time.Second, true, 2},
		{ErrNoManager, 129 * time.Second, true, 2},
		{ErrNoManager, 130 * time.Second, false, 2},
	} {
		if borne := a.bears(x.err, start.Add(x.after)); borne != x.borne || reported != x.reported {
			t.Errorf("%d: %v borne %t, said %d times; want %t, %d", i, x.err, borne, reported, x.borne, x.reported)
		}
	}
	if (&absence{met: true}).bears(ErrNoManager, start) {
		t.Error("borne by one that was not asked to")
	}
}

// serveAt serves the socket of dir until stop, which cuts what is under way.
func serveAt(t *testing.T, dir string, handle http.HandlerFunc) (stop func()) {
	t.Helper()
	folder, address, err := Socket(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: handle, ReadHeaderTimeout: patient}
	go func() { _ = s.Serve(l) }()
	return func() { _ = errors.Join(s.Close(), folder.Close()) }
}

// Ensure that waiting and streams go on with the next manager where they were, also a stream that had said nothing yet,
// and that nothing that changes something is asked for twice.
func TestOutlast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	asked := make(chan struct{}, 8)
	stop := serveAt(t, dir, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/events" {
			fmt.Fprint(w, "id: 41\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		asked <- struct{}{}
		<-r.Context().Done()
	})
	c, err := Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var reported atomic.Int32
	away := make(chan struct{})
	c.Outlast(patient, func() {
		if reported.Add(1) == 1 {
			close(away)
		}
	})
	c.away.met = true
	var lines []string
	over := make(chan error, 2)
	go func() {
		_, bad := c.Wait(t.Context(), "7")
		over <- bad
	}()
	go func() {
		over <- c.Events(t.Context(), -1, func(seq uint64, line []byte) error {
			if lines = append(lines, fmt.Sprint(seq, " ", string(line))); len(lines) == 2 {
				return context.Canceled
			}
			return nil
		})
	}()
	<-asked
	<-asked
	stop()
	<-away
	if _, err = c.Cancel(t.Context(), "7"); !errors.Is(err, ErrNoManager) {
		t.Errorf("cancel: %v", err)
	}
	var last atomic.Value
	stop = serveAt(t, dir, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/events" {
			last.Store(r.Header.Get("Last-Event-ID"))
			fmt.Fprint(w, "id: 41\n\nevent: event\nid: 42\ndata: {}\n\nevent: event\nid: 43\ndata: 1\n\n")
			return
		}
		_ = json.NewEncoder(w).Encode(Job{ID: 7, State: "done"})
	})
	defer stop()
	for range 2 {
		if err = <-over; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if want := []string{"42 {}", "43 1"}; !slices.Equal(lines, want) || last.Load() != "41" || reported.Load() != 1 {
		t.Errorf("%q behind %v, said %d times; want %q behind 41, once", lines, last.Load(), reported.Load(), want)
	}
}
