package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Times of streams.
const (
	lookAgain = 500 * time.Millisecond // at whether the client is still admitted
	keepAlive = 15 * time.Second       // a comment after so much silence finds clients that are gone
)

// stream writes server-sent events, or text as it is. A client that does not read holds up no stream but its own,
// which ends if it takes nothing for a minute: it can go on later from where it was.
type stream struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
	text    bool
	buf     []byte
	last    time.Time
}

// newStream starts a stream to the client of a request. It is over when the context is, at the latest when its client
// is no longer admitted. Once stop returns no one writes to it.
func newStream(w http.ResponseWriter, r *http.Request) (_ *stream, _ context.Context, stop context.CancelFunc) {
	s := &stream{w: w, control: http.NewResponseController(w), last: time.Now()}
	s.text = strings.HasPrefix(r.Header.Get("Accept"), "text/plain")
	kind := "text/event-stream"
	if s.text {
		kind = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(http.StatusOK)
	_ = s.control.Flush()
	ctx, cancel := context.WithCancel(r.Context())
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx, cancel, callerOf(ctx).admitted) })
	return s, ctx, func() { cancel(); watching.Wait() }
}

// watch ends the stream of a client that is admitted no longer, and finds one that is gone.
func (s *stream) watch(ctx context.Context, stop context.CancelFunc, admitted func() bool) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !admitted() || s.alive() != nil {
			return
		}
	}
}

// alive writes a comment if nothing was written for long.
func (s *stream) alive() error {
	if !s.mu.TryLock() { // something is being written
		return nil
	}
	defer s.mu.Unlock()
	if s.text || time.Since(s.last) < keepAlive {
		return nil
	}
	return s.write([]byte(":\n\n"))
}

// send writes an event; data is one line. In a stream of text it is nothing.
func (s *stream) send(kind, id string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text {
		return nil
	}
	s.buf = fmt.Appendf(s.buf[:0], "event: %s\nid: %s\ndata: ", kind, id)
	s.buf = append(s.buf, data...)
	return s.write(append(s.buf, "\n\n"...))
}

// start says behind which event a stream starts. In a stream of text it is nothing.
func (s *stream) start(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text {
		return nil
	}
	return s.write([]byte("id: " + id + "\n\n"))
}

// write writes b within a minute.
func (s *stream) write(b []byte) error {
	s.last = time.Now()
	_ = s.control.SetWriteDeadline(s.last.Add(writing))
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.control.Flush()
}
