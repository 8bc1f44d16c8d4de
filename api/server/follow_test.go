package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/eventlog"
)

// Ensure that an output is followed through the attempts of a job to its end, and that a stream goes on where it broke.
func TestFollowThroughAttempts(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	go_ := filepath.Join(filepath.Dir(r.dir), "go")
	r.submit(`jobs: [{name: a, grace: 1s, command: [sh, -c, 'echo attempt $TRAINYARD_ATTEMPT; until [ -e ` + go_ +
		` ]; do sleep 0.05; done; echo "end of $TRAINYARD_ATTEMPT"; exit 7']}]`)
	var got strings.Builder
	asked := false
	end, err := r.client.Logs(t.Context(), "a", api.LogOptions{Attempt: 1, Follow: true, Tail: -1},
		func(o api.Output) error {
			got.WriteString(o.Text)
			switch {
			case strings.Contains(got.String(), "attempt 1\n") && !asked:
				asked = true
				if _, err := r.client.Requeue(t.Context(), "a"); err != nil {
					t.Error(err)
				}
			case strings.Contains(got.String(), "attempt 2\n"):
				write(t, go_, nil)
			}
			return nil
		})
	if err != nil || end.State != "done" || end.Outcome != "failed" || end.ExitCode != 7 || end.Attempt != 2 {
		t.Errorf("%+v, %v", end, err)
	}
	if want := "attempt 1\nattempt 2\nend of 2\n"; got.String() != want {
		t.Errorf("%q, want %q", got.String(), want)
	}
	j, err := r.client.Wait(t.Context(), "a")
	if err != nil || j.ExitCode != 7 || j.Attempt != 2 || j.Started == "" || j.Ended == "" || j.RunSec <= 0 {
		t.Errorf("%+v, %v", j, err)
	}
	for _, c := range []struct {
		o    api.LogOptions
		want string
	}{
		{api.LogOptions{Tail: -1}, "attempt 2\nend of 2\n"},
		{api.LogOptions{Attempt: 1, Tail: -1}, "attempt 1\n"},
		{api.LogOptions{Tail: 1}, "end of 2\n"},
		{api.LogOptions{Tail: 0}, ""},
		{api.LogOptions{Tail: 9}, "attempt 2\nend of 2\n"},
		{api.LogOptions{Since: time.Now().Add(time.Hour), Follow: true, Tail: -1}, "attempt 2\nend of 2\n"},
		{api.LogOptions{Since: time.Now().Add(-time.Hour), Follow: true, Tail: -1}, "attempt 1\nattempt 2\nend of 2\n"},
	} {
		got.Reset()
		if _, err = r.client.Logs(t.Context(), "0", c.o,
			func(o api.Output) error { got.WriteString(o.Text); return nil }); err != nil || got.String() != c.want {
			t.Errorf("%+v: %q, %v; want %q", c.o, got.String(), err, c.want)
		}
	}
	if _, err = r.client.Logs(t.Context(), "a", api.LogOptions{Attempt: 9}, nil); !errors.Is(err, api.ErrRefused) {
		t.Errorf("attempt 9: %v", err)
	}
	resp, err := r.client.Do(t.Context(), http.MethodGet, "/v1/jobs/a/logs", nil, http.Header{"Accept": {"text/plain"}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "attempt 2\nend of 2\n" {
		t.Errorf("as text: %q, %v", text, err)
	}
}

// Ensure that a stream goes on behind the event that was reported last.
func TestLogsGoOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	r.submit(later)
	text := "one\ntwo €uro\nthree\n"
	r.output(0, 1, text)
	for at := range len(text) + 1 {
		resp, err := r.client.Do(t.Context(), http.MethodGet, "/v1/jobs/0/logs", nil,
			http.Header{"Last-Event-Id": {"1:" + strconv.Itoa(at)}})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if at < len(text) && !utf8.RuneStart(text[at]) {
			continue // no one received an event that ends there
		}
		want := strings.ReplaceAll(text[at:], "\n", `\n`)
		if err != nil || want != "" && !strings.Contains(string(body), `"text":"`+want+`"`) ||
			!strings.Contains(string(body), "event: end") {
			t.Errorf("behind %d: %q, %v", at, body, err)
		}
	}
	for _, id := range []string{"x", "1", "0:1", "1:-1", "1:1x", "99999999999:1"} {
		if _, err := r.client.Do(t.Context(), http.MethodGet, "/v1/jobs/0/logs", nil,
			http.Header{"Last-Event-Id": {id}}); !errors.Is(err, api.ErrMalformed) {
			t.Errorf("behind %q: %v", id, err)
		}
	}
}

// output makes what an attempt wrote.
func (r *rig) output(job, attempt int, text string) string {
	r.Helper()
	path := shim.State(r.dir).RunDir(int32(job), int32(attempt)).Output()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.Fatal(err)
	}
	write(r, path, []byte(text))
	return path
}

// Ensure that whatever a job makes of its output, only a file of its own is read, and that what is no UTF-8 is reported
// as such.
func TestPromise22HostileOutput(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	r.submit(later)
	read := func() (string, error) {
		var got strings.Builder
		_, err := r.client.Logs(t.Context(), "0", api.LogOptions{Tail: -1},
			func(o api.Output) error { got.WriteString(o.Text); return nil })
		return got.String(), err
	}
	if got, err := read(); got != "" || err != nil {
		t.Errorf("nothing written: %q, %v", got, err)
	}
	raw := "a\x1b]52;c;eA==\ab\xff\xfe\x00<script>\u202e\ud7ff"
	path := r.output(0, 1, raw)
	if got, err := read(); got != strings.ToValidUTF8(strings.ReplaceAll(raw, "\xff\xfe", "\ufffd\ufffd"), "") ||
		err != nil {
		t.Errorf("%q, %v", got, err)
	}
	secret := filepath.Join(r.dir, "secret")
	write(t, secret, []byte("canary"))
	for name, plant := range map[string]func() error{
		"a link":           func() error { return os.Symlink(secret, path) },
		"a relative link":  func() error { return os.Symlink("../../../secret", path) },
		"a pipe":           func() error { return unix.Mkfifo(path, 0o600) },
		"a folder":         func() error { return os.Mkdir(path, 0o700) },
		"a device":         func() error { return os.Symlink("/dev/zero", path) },
		"a folder's link":  func() error { return os.Symlink(r.dir, filepath.Dir(path)) },
		"a link of itself": func() error { return os.Symlink("output.log", path) },
	} {
		if err := errors.Join(os.RemoveAll(filepath.Dir(path))); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(name, "a folder's") {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		if got, err := read(); strings.Contains(got, "canary") || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Ensure that a line of 100 MB is reported in pieces whose memory is bounded, to one who reads and to one who does not,
// and that neither keeps the manager from anything.
func TestPromise22LongLine(t *testing.T) {
	r := newRig(t, 1, nil)
	r.submit(later)
	path := r.output(0, 1, "")
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	const size = 100 << 20
	block := bytes.Repeat(append(bytes.Repeat([]byte("x"), 500), "\x00\xff\x1b[31m"...), 1<<20/507)
	for n := 0; n < size; n += len(block) {
		if _, err = f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	slow, err := r.client.Do(t.Context(), http.MethodGet, "/v1/jobs/0/logs?follow=true", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Body.Close()
	reported, pieces, most := 0, 0, uint64(0)
	_, err = r.client.Logs(t.Context(), "0", api.LogOptions{Tail: -1}, func(o api.Output) error {
		if reported += utf8.RuneCountInString(o.Text); len(o.Text) > 3*(64<<10) {
			return fmt.Errorf("a piece of %d bytes", len(o.Text))
		}
		if pieces++; pieces%64 == 0 {
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapInuse)
		}
		return nil
	})
	if err != nil || int64(reported) != info.Size() {
		t.Errorf("%d characters of %d bytes, %v", reported, info.Size(), err)
	}
	grown := int64(most-before.HeapInuse) >> 20
	t.Logf("%d pieces; the heap of server and clients grew by %d MiB", pieces, grown)
	if grown > 64 {
		t.Errorf("the heap grew by %d MiB", grown)
	}
	if _, err = r.client.Cancel(t.Context(), "1"); err != nil {
		t.Error(err)
	}
}

// Ensure that events stream from any number on, without holes, then live, and that the streamed log replays.
func TestEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	r.submit(later)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	next, asked := uint64(1), false
	err := r.client.Events(ctx, 0, func(seq uint64, line []byte) error {
		if seq != next {
			t.Errorf("event %d after %d", seq, next-1)
		}
		next++
		if !asked {
			asked = true
			if _, err := r.client.Cancel(ctx, "of-bob"); err != nil {
				t.Error(err)
			}
		}
		if strings.Contains(string(line), `"event":"command"`) {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	resp, err := r.client.Do(t.Context(), http.MethodGet, "/v1/events", nil, http.Header{"Last-Event-Id": {"1"}})
	if err != nil {
		t.Fatal(err)
	}
	err = api.ReadEvents(resp.Body, func(e api.StreamEvent) error {
		if e.ID != "2" {
			t.Errorf("event %s behind 1", e.ID)
		}
		return io.EOF
	})
	_ = resp.Body.Close()
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	_, err = r.client.Do(t.Context(), http.MethodGet, "/v1/events?from=x", nil, nil)
	if !errors.Is(err, api.ErrMalformed) {
		t.Errorf("from x: %v", err)
	}
	var log bytes.Buffer
	if err = r.client.WriteLog(t.Context(), &log); err != nil {
		t.Fatal(err)
	}
	lines, err := eventlog.NewReader(&log, "log")
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for rec, err := range lines.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if n++; rec.Event.Seq != n {
			t.Errorf("event %d is %d in the log", n, rec.Event.Seq)
		}
	}
	if n < next-1 {
		t.Errorf("%d events in the log, %d were reported", n, next-1)
	}
}

// Ensure that one who asks for events and reads none keeps no one from anything.
func TestStalledReader(t *testing.T) {
	r := newRig(t, 1, nil)
	for range 8 {
		resp, err := r.client.Do(t.Context(), http.MethodGet, "/v1/events?from=0", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	name := strings.Repeat("n", 50)
	r.submit("jobs: [{command: [x], submit: 1h, count: 5000, name: " + name + "}]") // more than sockets hold
	if _, err := r.client.Cancel(t.Context(), "4999"); err != nil {
		t.Error(err)
	}
}

// Ensure that the value of a variable shows in no answer, list, stream or file but the store's own.
func TestPromise23Canary(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	const canary, second = "canary-7f3a9c", "canary-b81e44"
	env := map[string]string{"API_KEY": canary}
	var long []string // of any length: something may be cut, or hidden up to a length only
	for _, n := range []int{20, 39, 40, 41, 60, 61, 500, 5000} {
		value := fmt.Sprintf("canary-%d-", n) + strings.Repeat("x", n)
		env[fmt.Sprintf("KEY_%d", n)], long = value, append(long, value[:len(value)-n+4])
	}
	doc, err := r.client.Submit(t.Context(), api.Submission{Dir: filepath.Dir(r.dir),
		Env: env,
		File: `jobs: [{name: a, env: {DB_PASSWORD: ` + second +
			`}, command: [sh, -c, 'test ${#API_KEY} = 13 && test ${#DB_PASSWORD} = 13 && echo fine']}]`})
	if err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprint(doc)
	j, err := r.client.Wait(t.Context(), "a")
	if err != nil || j.Outcome != "finished" {
		t.Errorf("%+v, %v: the job did not get its variables", j, err)
	}
	for _, path := range []string{"/v1/jobs", "/v1/jobs/a", "/v1/jobs/a/wait", "/v1/jobs/a/logs", "/v1/nodes",
		"/v1/info", "/v1/log", "/metrics", "/openapi.json", "/v1/jobs/a/why",
		fmt.Sprintf("/v1/decisions/%d", r.decided())} {
		resp, err := r.client.Do(t.Context(), http.MethodGet, path, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Error(err)
		}
		said += path + "\n" + string(text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_ = r.client.Events(ctx, 0, func(seq uint64, line []byte) error {
		if said += string(line); seq >= r.m.LastEvent() {
			cancel()
		}
		return nil
	})
	cancel()
	if err := r.server.readable(1, errors.New(canary)); strings.Contains(err.Error(), canary) {
		t.Errorf("an error of the log: %v", err)
	}
	for _, c := range append(long, canary, second) {
		if i := strings.Index(said, c); i >= 0 {
			t.Errorf("%s is reported: ...%s", c, said[max(i-200, 0):i])
		}
	}
	if strings.Count(said, "(hidden)") < 4 || !strings.Contains(said, "API_KEY") {
		t.Errorf("variables are not named:\n%s", said)
	}
}
