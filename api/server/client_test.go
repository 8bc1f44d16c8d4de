package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// Ensure that each way in which a request fails is an error of its own, so that a program can distinguish them.
func TestClientErrors(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	r.submit(later)
	c := r.client
	ctx := t.Context()
	if _, err := c.Cancel(ctx, "of-ann"); err != nil {
		t.Fatal(err)
	}
	nowhere, err := api.Dial(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer nowhere.Close()
	past, cancel := context.WithCancel(ctx)
	cancel()
	for name, x := range map[string]struct {
		ask  func() error
		want error
		says string
	}{
		"no job": {func() error { _, err := c.Job(ctx, "unknown"); return err }, api.ErrNoJob,
			`job "unknown": no such job`},
		"no number": {func() error { _, err := c.Cancel(ctx, "77"); return err }, api.ErrNoJob, `job "77"`},
		"a path": {func() error { _, err := c.Cancel(ctx, "../0"); return err }, api.ErrForbidden,
			"no such path"},
		"logs of no job": {func() error { _, err := c.Logs(ctx, "unknown", api.LogOptions{}, nil); return err },
			api.ErrNoJob, ""},
		"done": {func() error { _, err := c.Requeue(ctx, "of-ann"); return err }, api.ErrDone,
			`job "of-ann": done already (cancelled)`},
		"done, cancelled": {func() error { _, err := c.Cancel(ctx, "of-ann"); return err }, nil, ""},
		"no GPU": {func() error { _, err := c.DrainGPU(ctx, "GPU-x", true); return err }, api.ErrNoGPU,
			`"GPU-x"`},
		"too wide": {func() error {
			_, err := c.Submit(ctx, api.Submission{File: "jobs: [{command: [x], gpus: 2}]", Dir: "/"})
			return err
		}, api.ErrRefused, "needs 2 slots"},
		"malformed": {func() error { _, err := c.Submit(ctx, api.Submission{File: "jobs: 1", Dir: "/"}); return err },
			api.ErrMalformed, "jobs.yaml:1:7"},
		"too long": {func() error {
			_, err := c.Submit(ctx, api.Submission{File: strings.Repeat("x", api.MaxJobs), Dir: "/"})
			return err
		}, api.ErrMalformed, "want at most"},
		"no manager": {func() error { _, err := nowhere.Info(ctx); return err }, api.ErrNoManager,
			"no trainyard runs there"},
		"no such state": {func() error { _, err := c.Jobs(ctx, api.Filter{States: []string{"dead"}}); return err },
			api.ErrMalformed, `"dead"`},
		"nothing listens": {func() error { _, err := api.DialNetwork("127.0.0.1:1", "", nil).Info(ctx); return err },
			api.ErrNoManager, ""},
		"an interrupt": {func() error { _, err := c.Info(past); return err }, context.Canceled, ""},
		"one who is asked": {func() error {
			return c.Events(ctx, 0, func(uint64, []byte) error { return io.ErrShortWrite })
		}, io.ErrShortWrite, ""},
		"no folder at all": {func() error { _, err := api.Dial(filepath.Join(t.TempDir(), "x")); return err },
			fs.ErrNotExist, ""},
	} {
		if err := x.ask(); !errors.Is(err, x.want) || !strings.Contains(fmt.Sprint(err), x.says) {
			t.Errorf("%s: %v, want %v that says %q", name, err, x.want, x.says)
		}
	}
}

// Ensure that a manager that stops ends streams and answers, and that a client then says that there is none.
func TestManagerStops(t *testing.T) {
	t.Parallel()
	over := make(chan error, 2)
	t.Run("runs", func(t *testing.T) {
		r := newRig(t, 1, nil)
		r.submit(later)
		dir := r.dir
		ready := make(chan struct{}, 2)
		go func() {
			c, err := api.Dial(dir)
			if err == nil {
				defer c.Close()
				err = c.Events(context.Background(), 0, func(uint64, []byte) error {
					select {
					case ready <- struct{}{}:
					default:
					}
					return nil
				})
			}
			over <- err
		}()
		<-ready
	})
	select {
	case err := <-over:
		if !errors.Is(err, api.ErrNoManager) && !errors.Is(err, api.ErrStopped) && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	case <-time.After(waitLong):
		t.Error("a stream outlives its manager")
	}
}

// Ensure that the list is of the jobs asked for, and says how they stand.
func TestJobs(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, nil)
	r.submit(later)
	r.submit("jobs: [{name: long, user: ann, command: [sleep, 1h], gpus: 2, grace: 1s, priority: 3, model: m}, " +
		"{name: waits, user: bob, command: [x]}]")
	ctx := t.Context()
	for deadline := time.Now().Add(waitLong); ; time.Sleep(20 * time.Millisecond) {
		j, err := r.client.Job(ctx, "long")
		if err != nil || time.Now().After(deadline) {
			t.Fatal(j, err)
		}
		if j.State == "running" {
			if len(j.GPUs) != 2 || j.Min != 2 || j.Priority != 3 || j.Model != "m" || j.Attempt != 1 ||
				j.User != "ann" {
				t.Errorf("%+v", j)
			}
			break
		}
	}
	for _, c := range []struct {
		f     api.Filter
		want  string
		total int
	}{
		{api.Filter{}, "of-ann held, of-bob held, long running, waits waiting", 4},
		{api.Filter{States: []string{"held"}}, "of-ann held, of-bob held", 2},
		{api.Filter{States: []string{"running", "waiting"}}, "long running, waits waiting", 2},
		{api.Filter{User: "bob"}, "of-bob held, waits waiting", 2},
		{api.Filter{Limit: 1}, "waits waiting", 4},
		{api.Filter{User: "unknown"}, "", 0},
	} {
		doc, err := r.client.Jobs(ctx, c.f)
		var got []string
		for _, j := range doc.Jobs {
			got = append(got, j.Name+" "+j.State)
		}
		if strings.Join(got, ", ") != c.want || doc.Total != c.total || err != nil ||
			doc.Schema != "trainyard.jobs/v1" || doc.System != "fifo-skip" {
			t.Errorf("%+v: %v of %d, %v; want %s of %d", c.f, got, doc.Total, err, c.want, c.total)
		}
	}
	for _, verb := range []func(context.Context, string) (api.Job, error){r.client.Pause, r.client.Resume} {
		if _, err := verb(ctx, "waits"); err != nil {
			t.Error(err)
		}
	}
	r.nodes()
	r.metrics()
}

// nodes checks what is reported of a rig of two slots that the job 2 holds.
func (r *rig) nodes() {
	r.Helper()
	ctx := r.Context()
	doc, err := r.client.Nodes(ctx)
	if err != nil || doc.Unit != "slot" || doc.Drained || len(doc.GPUs) != 2 || doc.Node == "" {
		r.Errorf("%+v, %v", doc, err)
	}
	for _, g := range doc.GPUs {
		if g.State != "in-use" || len(g.Jobs) != 1 || g.Jobs[0] != 2 {
			r.Errorf("%+v", g)
		}
	}
	if doc, err = r.client.DrainGPU(ctx, "1", true); err != nil || doc.GPUs[1].State != "drained" ||
		doc.GPUs[0].State != "in-use" {
		r.Errorf("%+v, %v", doc, err)
	}
	if doc, err = r.client.DrainGPU(ctx, doc.GPUs[1].Name, false); err != nil || doc.GPUs[1].State != "in-use" {
		r.Errorf("%+v, %v", doc, err)
	}
	for _, on := range []bool{true, false} {
		if doc, err = r.client.Drain(ctx, on); err != nil || doc.Drained != on {
			r.Errorf("drain %t: %+v, %v", on, doc, err)
		}
	}
}

// metrics checks the figures of the same.
func (r *rig) metrics() {
	r.Helper()
	resp, err := r.client.Do(r.Context(), http.MethodGet, "/metrics", nil, nil)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	for _, want := range []string{`trainyard_jobs{state="held"} 2`, `trainyard_jobs{state="running"} 1`,
		`trainyard_gpus{state="busy"} 2`,
		`trainyard_queue_length 1`, `trainyard_events_total{kind="arrived"} 4`, "trainyard_commits_total ",
		"trainyard_decision_seconds_count ",
		"trainyard_preemptions_total 0", "trainyard_restarts_total 0", "trainyard_energy_joules_total 0",
		`trainyard_events_total{kind="decided"} 1`,
		"go_goroutines ", "process_open_fds "} {
		if !strings.Contains(string(text), want) {
			r.Errorf("no %q among the figures", want)
		}
	}
	if strings.Contains(string(text), "trainyard_commits_total 0\n") || strings.Contains(string(text),
		"trainyard_decision_seconds_count 0\n") {
		r.Errorf("commits or decisions are not counted")
	}
}

// BenchmarkJobs lists 10,000 jobs over the socket, as ps does: at most 150 ms.
func BenchmarkJobs(b *testing.B) {
	r := newRig(b, 1, nil)
	r.submit("jobs: [{command: [x], submit: 1h, count: 10000, user: ann, model: resnet50}]")
	b.ReportAllocs()
	for b.Loop() {
		doc, err := r.client.Jobs(b.Context(), api.Filter{})
		if err != nil || len(doc.Jobs) != 10000 {
			b.Fatal(len(doc.Jobs), err)
		}
	}
}

// BenchmarkJob asks for one of them.
func BenchmarkJob(b *testing.B) {
	r := newRig(b, 1, nil)
	r.submit("jobs: [{command: [x], submit: 1h, count: 10000, user: ann, model: resnet50}]")
	for b.Loop() {
		if _, err := r.client.Job(b.Context(), "7"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkServeJobs is what the server has to do with it.
func BenchmarkServeJobs(b *testing.B) {
	r := newRig(b, 1, nil)
	r.submit("jobs: [{command: [x], submit: 1h, count: 10000, user: ann, model: resnet50}]")
	b.ReportAllocs()
	for b.Loop() {
		resp, err := r.client.Do(b.Context(), http.MethodGet, "/v1/jobs", nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(n)
	}
}

// BenchmarkSubmit submits as many jobs as a file may have.
func BenchmarkSubmit(b *testing.B) {
	r := newRig(b, 1, nil)
	for b.Loop() {
		r.submit("jobs: [{command: [x], submit: 1h, count: 100000}]")
	}
}
