package local

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// shortFolder is a folder with a path short enough for sockets in it.
func shortFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ty")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// post posts to a socket as a job would.
func post(path, method, url, body string) (status int, err error) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}}
	r, err := http.NewRequest(method, "http://trainyard"+url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// Ensure that a job may post its progress to its socket, which is its user's alone, whoever else hangs on to it; and
// that the socket goes with the attempt.
func TestSocket(t *testing.T) {
	t.Parallel()
	list, _ := jobs(t, time.Minute, `trap 'exit 0' TERM; while :; do sleep 0.05; done`)
	dir := shortFolder(t)
	d := open(t, dir, 1, 1, list...)
	t.Cleanup(d.Close)
	h := take(t, d, sched.View{})
	h.arrivals(1)
	h.apply(start(0, 1, 0))
	h.await(sched.AttemptStarted, 0)
	path := socketPath(d.o.State.RunDir(0, 1))
	waitFor(t, "the socket", func() bool { // it comes up a moment after the job
		info, err := os.Stat(path)
		return err == nil && info.Mode().Perm() == 0o600
	})
	idle, err := net.Dial("unix", path) // says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	for _, body := range []string{`{"step": 1}`, "junk\n\n{\"step\": 50}\nTRAINYARD done"} {
		if got, err := post(path, "POST", "/v1/progress", body); got != 204 {
			t.Errorf("%s: %d, %v, want 204", body, got, err)
		}
	}
	if e := h.await(sched.Progressed, 0); e.Value != 50 {
		t.Errorf("reported %+v, want step 50", e)
	}
	for _, c := range []struct {
		method, url, body string
		want              int
	}{
		{"POST", "/v1/progress", "", 204},
		{"POST", "/v1/progress", strings.Repeat("x", 2*maxPost), 400},
		{"GET", "/v1/progress", "", 405},
		{"DELETE", "/v1/progress", "", 405}, {"POST", "/v1/progres", "", 404}, {"POST", "/x/../v1/progress", "", 404},
	} {
		if got, err := post(path, c.method, c.url, c.body); got != c.want && !(c.want == 400 && err != nil) {
			t.Errorf("%s %s: %d, %v, want %d", c.method, c.url, got, err, c.want)
		}
	}
	h.apply(stop(0, 1))
	if e := h.await(sched.AttemptEnded, 0); e.Outcome != sched.Finished || e.Value != 50 {
		t.Errorf("ended %+v, want finished with 50 steps", e)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is still there")
	}
}

// Ensure that a path too long for a socket is left out.
func TestSocketPath(t *testing.T) {
	for n, want := range map[int]bool{10: true, 99: true, 100: true, 101: false, 200: false} {
		path := socketPath(shim.RunDir("/" + strings.Repeat("x", n-1)))
		if got := path != ""; got != want {
			t.Errorf("a folder of %d bytes: %q", n, path)
		}
	}
}
