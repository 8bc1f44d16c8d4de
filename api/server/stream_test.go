package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/trainyard/trainyard/api"
)

// slowWriter blocks in each write until it is let go.
type slowWriter struct {
	*httptest.ResponseRecorder
	writes, let chan struct{}
}

func (w *slowWriter) Write(b []byte) (int, error) {
	w.writes <- struct{}{}
	<-w.let
	return w.ResponseRecorder.Write(b)
}

// Ensure that a stream is not over before the one who watches it has written his last: the writer belongs to the server
// again then.
func TestStreamStopsWithItsWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowWriter{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		ctx := context.WithValue(t.Context(), callerKey{}, caller{admitted: func() bool { return true }})
		_, _, stop := newStream(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
		<-w.writes // the comment after so much silence
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("stopped while something is being written")
		default:
		}
		close(w.let)
		<-stopped
	})
}

// Ensure that one who asks leaves a quarter of the streams to others, on the socket and over the network, that a token
// has 32 at most, that there are two of those that read the whole log, and that a place is free again once it was left.
func TestStreamsAreShared(t *testing.T) {
	s := newStreams(400)
	open := func(network bool, who, path string, few int) (leave func(), err error) {
		r := httptest.NewRequest("GET", path, nil)
		if network {
			r.TLS = new(tls.ConnectionState)
			r.Header.Set("Authorization", "Bearer "+who)
		}
		return s.enter(r, &caller{who: api.Who{Name: who}}, few)
	}
	fill := func(network bool, who string) (n int, leave func()) {
		for {
			out, err := open(network, who, "/v1/events", 0)
			if errors.Is(err, api.ErrBusy) {
				return n, leave
			}
			n, leave = n+1, out
		}
	}
	for _, c := range []struct {
		network bool
		who     string
		want    int
	}{{false, "ann", 300}, {false, "bob", 100}, {false, "eve", 0}, {true, "one", 32}, {true, "two", 32},
		{true, "three", 32}, {true, "four", 4}} {
		n, leave := fill(c.network, c.who)
		if n != c.want {
			t.Errorf("%+v: %d streams", c, n)
		}
		if n == 0 {
			continue
		}
		leave()
		if again, _ := fill(c.network, c.who); again != 1 {
			t.Errorf("%+v: %d places were left, want 1", c, again)
		}
	}
	s = newStreams(400)
	for i := range 3 {
		if _, err := open(i == 0, "ann", "/v1/log", 2); (err != nil) != (i == 2) {
			t.Errorf("log %d: %v", i, err)
		}
	}
	if _, err := open(false, "ann", "/v1/events", 0); err != nil || s.open() != 3 {
		t.Errorf("%v, %d open", err, s.open())
	}
}
