package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// logs returns what is reported of the output of a job.
func (r *rig) logs(job string) (string, error) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), waitLong)
	defer cancel()
	var b strings.Builder
	_, err := r.client.Logs(ctx, job, api.LogOptions{Tail: -1},
		func(o api.Output) error { b.WriteString(o.Text); return nil })
	return b.String(), err
}

// Promise 21: whatever stands in a job file, nothing of it is read by a shell, names no file outside of the job's own
// folder, and reaches memory without bounds; what cannot be meant is refused as a whole, before anything is durable.
func TestPromise21NoEscapeByInput(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	work := filepath.Dir(r.dir)
	before := listing(t, work)
	for name, s := range map[string]api.Submission{
		"NUL in a command":         {File: `jobs: [{command: [x, "a\0b"]}]`},
		"NUL in a variable":        {File: `jobs: [{command: [x], env: {A: "a\0b"}}]`},
		"NUL in a folder":          {File: `jobs: [{command: [x], dir: "/tmp/\0"}]`},
		"NUL in a name":            {File: `jobs: [{command: [x], name: "a\0b"}]`},
		"NUL in a passed variable": {File: `jobs: [{command: [x]}]`, Env: map[string]string{"A": "a\x00b"}},
		"newline in a name":        {File: `jobs: [{command: [x], name: "a\nb"}]`},
		"a path for a name":        {File: `jobs: [{command: [x], name: ../../pwned}]`},
		"a shell for a name":       {File: `jobs: [{command: [x], name: $(touch pwned)}]`},
		"a folder that is none":    {File: `jobs: [{command: [x]}]`, Dir: "../../etc"},
		"ours to set":              {File: `jobs: [{command: [x], env: {TRAINYARD_JOB_ID: "7"}}]`},
		"ours to pass":             {File: `jobs: [{command: [x]}]`, Env: map[string]string{"TRAINYARD_COOKIE": "7"}},
		"a name of no variable":    {File: `jobs: [{command: [x], env: {"A=B": c}}]`},
		"10 MB of variables": {File: `jobs: [{command: [x]}]`, Env: map[string]string{"A": strings.Repeat("x",
			10<<20)}},
		"10 MB in the file":    {File: `jobs: [{command: [x], env: {A: ` + strings.Repeat("x", 10<<20) + `}}]`},
		"1 MB in one variable": {File: `jobs: [{command: [x], env: {A: ` + strings.Repeat("x", 1<<20) + `}}]`},
		"a bomb of aliases": {File: "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c " +
			"[*b,*b,*b,*b,*b,*b,*b,*b]\njobs: [{command: *c}]"},
	} {
		if s.Dir == "" {
			s.Dir = work
		}
		if doc, err := r.client.Submit(t.Context(), s); !errors.Is(err, api.ErrMalformed) && !errors.Is(err,
			api.ErrRefused) {
			t.Errorf("%s: %v, %v, want it refused", name, doc.Jobs, err)
		}
	}
	if doc, err := r.client.Jobs(t.Context(), api.Filter{}); err != nil || doc.Total > 0 {
		t.Errorf("%d jobs were taken, %v", doc.Total, err)
	}
	// What a shell or a path would read as something else reaches the job as it is.
	hostile := []string{"$(touch pwned)", "`touch pwned`", "; touch pwned", "../../../pwned", "-rf", "a\nb", "*"}
	file := fmt.Sprintf("jobs: [{user: ../pwned, model: $(touch pwned), command: [printf, '%%s|', %s]}]",
		quoted(hostile))
	r.submit(file)
	if j, err := r.client.Wait(t.Context(), "0"); err != nil || j.Outcome != "finished" {
		t.Errorf("%+v, %v", j, err)
	}
	if said, err := r.logs("0"); err != nil || said != strings.Join(hostile, "|")+"|" {
		t.Errorf("the job was given %q, %v", said, err)
	}
	if after := listing(t, work); after != before {
		t.Errorf("files next to the state: %s, before %s", after, before)
	}
	for _, path := range []string{"/v1/jobs/..%2f..%2fetc/logs", "/v1/jobs/0%00/logs", "/v1/jobs/%2e%2e/logs",
		"/v1/jobs/0/logs?attempt=-1", "/v1/jobs/0/logs?attempt=../../1"} {
		if resp, err := r.client.Do(t.Context(), http.MethodGet, path, nil, nil); err == nil {
			_ = resp.Body.Close()
			t.Errorf("%s is answered", path)
		}
	}
}

// Ensure that a job which puts a link in the place of its output shows no one what lies behind it, whenever it
// does so.
func TestPromise21LinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	const canary = "canary-51f0aa"
	secret := filepath.Join(filepath.Dir(r.dir), "secret")
	write(t, secret, []byte(canary))
	out := filepath.Join(r.dir, "jobs", "0", "1", "output.log")
	r.submit(fmt.Sprintf(`jobs: [{command: [sh, -c, 'i=0; while [ $i -lt 150 ]; do ln -sfn %s %s; mv %s away; echo `+
		`fine > %s; i=$((i+1)); done; ln -sfn %s %s']}]`,
		secret, out, out, out, secret, out))
	for reads, over := 0, false; !over; reads++ {
		j, err := r.client.Job(t.Context(), "0")
		if err != nil {
			t.Fatal(err)
		}
		over = j.State == "done"
		if said, _ := r.logs("0"); strings.Contains(said, canary) {
			t.Fatalf("read %d says what a link leads to: %q", reads, said)
		}
	}
}

// listing names what is in a folder, without the state.
func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(entries)
}

// quoted are strings as they stand in YAML.
func quoted(list []string) string {
	var b strings.Builder
	for i, s := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", s)
	}
	return b.String()
}

// Promise 23: after jobs that were given secrets, one that runs and one that is done, these are in no answer
// (TestPromise23Canary), in no name, and in no file of the state folder but those that have to hold them to start the
// job: the store and the orders, which only their owner can read; nor are they in the command line of any process.
func TestPromise23SecretsAreNowhereElse(t *testing.T) {
	t.Parallel()
	token := ""
	r := newRig(t, 2, func(r *rig) {
		network(t)(r)
		token = r.token("canary", "ann", api.User)
	})
	secrets := []string{"canary-90d1e2", "canary-77ab01", token}
	_, submitted := r.client.Submit(t.Context(), api.Submission{Dir: filepath.Dir(r.dir),
		Env: map[string]string{"API_KEY": secrets[0]},
		File: `defaults: {env: {DB_PASSWORD: ` + secrets[1] + `}}
jobs: [{name: over, command: [sh, -c, 'test -n "$API_KEY" && exit 3']}, {name: runs, command: [sleep, 1h], grace: 1s}]`})
	if submitted != nil {
		t.Fatal(submitted)
	}
	if j, err := r.client.Wait(t.Context(), "over"); err != nil || j.ExitCode != 3 {
		t.Errorf("%+v, %v", j, err)
	}
	for end := time.Now().Add(waitLong); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if j, err := r.client.Job(t.Context(), "runs"); err != nil || j.State == "running" {
			break
		}
	}
	if _, err := r.dial(token).Jobs(t.Context(), api.Filter{}); err != nil {
		t.Error(err)
	}
	holders := 0
	walked := filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, s := range secrets {
			if !holds(text, s) {
				continue
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			may := e.Name() == "order.json" || strings.HasPrefix(e.Name(), "trainyard.db")
			if !may || s == token || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s of mode %v holds %s", path, info.Mode(), s)
			}
			holders++
		}
		return nil
	})
	if walked != nil {
		t.Error(walked)
	}
	if info, err := os.Stat(r.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v, want 0700", info.Mode(), err)
	}
	if holders == 0 {
		t.Error("the search finds nothing: it is wrong")
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		text, _ := os.ReadFile(path)
		for _, s := range secrets {
			if bytes.Contains(text, []byte(s)) {
				t.Errorf("%s holds %s", path, s)
			}
		}
	}
}

// holds reports whether a text holds a secret, also in base64.
func holds(text []byte, secret string) bool {
	return bytes.Contains(text, []byte(secret)) || bytes.Contains(text,
		[]byte(base64.StdEncoding.EncodeToString([]byte(secret))[:12]))
}
