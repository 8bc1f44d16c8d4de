package server

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"
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
