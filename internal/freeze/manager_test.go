package freeze

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// unpackState unpacks a packed state folder and the log of its manager, and returns the folder that holds both. The
// path is short, as the program puts sockets into it.
func unpackState(t *testing.T, archive string) folder {
	t.Helper()
	dir, err := os.MkdirTemp("", "fz")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	in := tar.NewReader(bytes.NewReader(unpack(t, archive)))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return folder(dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// manager is a `trainyard serve` of the folder state within its folder.
type manager struct {
	folder
	program string
	cmd     *exec.Cmd
	out     bytes.Buffer
}

// serve starts a manager, once it answers. It is stopped at the end of the test at the latest.
func (dir folder) serve(t *testing.T, program string, args ...string) *manager {
	t.Helper()
	m := &manager{folder: dir, program: program}
	m.cmd = dir.command(t, program, append([]string{"serve", "--state", "state"}, args...)...)
	m.cmd.Stdout, m.cmd.Stderr = &m.out, &m.out
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.stop(t) })
	m.until(t, "the manager answers", func() bool {
		_, code, _ := dir.exit(t, program, "nodes", "--state", "state")
		return code == 0
	})
	return m
}

// stop stops the manager; jobs go on.
func (m *manager) stop(t *testing.T) {
	t.Helper()
	if m.cmd.ProcessState != nil {
		return
	}
	_ = m.cmd.Process.Signal(syscall.SIGTERM)
	if err := m.cmd.Wait(); err != nil {
		t.Errorf("serve: %v\n%s", err, m.out.String())
	}
}

// until waits for what is to hold within a minute.
func (m *manager) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s\n%s", what, m.out.String())
		}
	}
}

// do runs a verb of the manager's program on its state folder, which must succeed.
func (m *manager) do(t *testing.T, verb string, args ...string) []byte {
	t.Helper()
	args = append([]string{verb, "--state", "state"}, args...)
	out, code, stderr := m.exit(t, m.program, args...)
	if code != 0 {
		t.Fatalf("trainyard %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return out
}

// get returns what the manager answers at a path of its API.
func (m *manager) get(t *testing.T, path string) []byte {
	t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(string(m.folder), "state", "control"))
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	answer, err := client.Get("http://localhost" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s %v\n%s", path, answer.Status, err, b)
	}
	return b
}

// job is what a manager says of a job.
type job struct {
	ID      int
	Name    string
	State   string
	Outcome string
	Attempt int
}

// jobs returns all jobs of the manager by name.
func (m *manager) jobs(t *testing.T) map[string]job {
	t.Helper()
	var doc struct{ Jobs []job }
	if err := json.Unmarshal(m.get(t, "/v1/jobs"), &doc); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]job)
	for _, j := range doc.Jobs {
		all[j.Name] = j
	}
	return all
}

// end cancels all jobs that are not done, so that no process of theirs stays, and stops the manager.
func (m *manager) end(t *testing.T) {
	t.Helper()
	for name, j := range m.jobs(t) {
		if j.State != "done" {
			m.do(t, "cancel", name)
		}
	}
	m.until(t, "all jobs are done", func() bool {
		for _, j := range m.jobs(t) {
			if j.State != "done" {
				return false
			}
		}
		return true
	})
	m.stop(t)
}
