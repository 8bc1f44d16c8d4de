package local

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/driver/local/shim"
)

// Limits of what a job may post.
const (
	maxPost      = 64 << 10 // bytes, header included
	postPatience = 2 * time.Second
)

// socketPath returns where a job may post its progress, "" if the path is longer than an address may be.
func socketPath(dir shim.RunDir) string {
	path := filepath.Join(string(dir), "socket")
	if len(path) >= len(unix.RawSockaddrUnix{}.Path) {
		return ""
	}
	return path
}

// listen has what the job posts to its socket taken, until the returned function is called. One connection is served at
// a time, and not for long: whatever a job does with its socket, it holds one of our files. Where no driver is, no one
// listens; a job is to go on all the same.
func (t *tail) listen() (hangUp func()) {
	path := socketPath(t.a.dir)
	if path == "" {
		return func() {}
	}
	_ = os.Remove(path) // of an earlier driver
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		t.a.d.o.Log.Warn("no socket for progress", "job", t.a.job, "attempt", t.a.number, "error", err)
	}
	if l == nil {
		return func() {}
	}
	t.a.d.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.serve(conn)
		}
	})
	return func() { _ = l.Close() }
}

// serve answers one request: POST /v1/progress with lines of JSON.
func (t *tail) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * postPatience))
	_ = conn.SetReadDeadline(time.Now().Add(postPatience))
	status := http.StatusBadRequest
	r, err := http.ReadRequest(bufio.NewReader(io.LimitReader(conn, maxPost)))
	if err == nil {
		status = t.posted(r)
	}
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status,
		http.StatusText(status))
}

// posted takes in what a request says, and returns the status of the answer.
func (t *tail) posted(r *http.Request) int {
	switch {
	case r.URL.Path != "/v1/progress":
		return http.StatusNotFound
	case r.Method != http.MethodPost:
		return http.StatusMethodNotAllowed
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return http.StatusBadRequest
	}
	select {
	case t.posts <- append(body, '\n'):
		return http.StatusNoContent
	case <-t.over:
	case <-time.After(postPatience): // who decides is busy
	}
	return http.StatusServiceUnavailable
}

// heard notes what was posted.
func (t *tail) heard(body []byte) {
	t.take(progress.Socket, body, time.Now())
	if t.ready && isClosed(t.a.stopped) && !isClosed(t.a.readied) {
		close(t.a.readied)
	}
}
