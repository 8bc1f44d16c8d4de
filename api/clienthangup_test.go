package api

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"testing"
	"time"
)

// Ensure that a reader asks again where its connection is closed before it has asked, as by a manager without room.
func TestClosedBeforeAsked(t *testing.T) {
	t.Parallel()
	const closed = 3
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "control"))
	if err != nil {
		t.Fatal(err)
	}
	handle := func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(Info{PID: 7}) }
	s := &http.Server{Handler: http.HandlerFunc(handle), ReadHeaderTimeout: patient}
	go func() {
		for range closed {
			if conn, failed := l.Accept(); failed == nil {
				_ = conn.Close()
			}
		}
		_ = s.Serve(l)
	}()
	t.Cleanup(func() { _ = s.Close() })
	c, err := Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { time.Sleep(50 * time.Millisecond) }}) // its end is read first
	if info, err := c.Info(ctx); err != nil || info.PID != 7 {
		t.Errorf("process %d, %v; want an answer once there is room", info.PID, err)
	}
}
