package logs

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Ensure that of a log that is read slowly little comes before it is read.
func TestLittleComesAhead(t *testing.T) {
	line := []byte("2026-01-01T00:00:30Z " + string(bytes.Repeat([]byte("x"), 1000)) + "\n")
	var sent atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil && sent.Load() < 16<<20 {
			n, err := w.Write(line)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	pods, err := Client(&rest.Config{Host: server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	first, over := make(chan bool, 1), make(chan bool)
	go func() {
		New(pods).Follow(ctx, types.NamespacedName{Namespace: "a", Name: "p"}, "c", func(time.Time, []byte) {
			select {
			case first <- true:
			default:
			}
			<-ctx.Done() // and reads no more
		}, func() {})
		close(over)
	}()
	<-first
	for was := int64(-1); was != sent.Load(); time.Sleep(300 * time.Millisecond) {
		was = sent.Load()
	}
	if n := sent.Load(); n > 1<<20 {
		t.Errorf("%d bytes were sent to one who does not read", n)
	}
	cancel()
	server.CloseClientConnections()
	<-over
}
