package apitest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/apitest"
	"github.com/trainyard/trainyard/api/server"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/access"
)

// TestMain makes this binary a shim where the driver starts it as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "shim" {
		os.Exit(shim.Main(shim.RunDir(os.Args[2])))
	}
	os.Exit(m.Run())
}

// Ensure that the manager of one machine keeps the contract.
func TestMachine(t *testing.T) { apitest.Run(t, machine) }

// machine is a manager of two slots, one of which runs a job until the test ends, and its control socket.
func machine(t *testing.T) apitest.World {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	c := serveMachine(t, dir)
	w := apitest.World{Client: c, Kind: api.Machine, Name: "runs", Output: "one\nzwei €\nthree\n", Width: 2}
	w.Submit = func(name string) (api.Submission, string) {
		file := fmt.Sprintf("jobs: [{name: %s, user: ann, gpus: 2, command: [x]}]", name)
		return api.Submission{File: file, Dir: filepath.Dir(dir)}, name
	}
	ctx, cancel := context.WithTimeout(t.Context(), apitest.Patience)
	defer cancel()
	submit := func(job string) string {
		doc, err := c.Submit(ctx, api.Submission{File: "jobs: [" + job + "]", Dir: filepath.Dir(dir)})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(doc.Jobs[0].ID)
	}
	w.Done = submit("{name: done, user: ann, command: ['true']}")
	if _, err := c.Wait(ctx, w.Done); err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(t.TempDir(), "written")
	w.Running = submit(`{name: runs, user: bob, gpus: 2, grace: 1s,
		command: [sh, -c, 'printf "one\nzwei €\nthree\n"; touch ` + written + `; exec sleep 1h']}`)
	apitest.Eventually(t, "running", func(ctx context.Context) bool {
		_, absent := os.Stat(written)
		j, err := c.Job(ctx, w.Running)
		return absent == nil && err == nil && j.State == "running"
	})
	w.Waiting = submit("{name: waits, user: ann, gpus: 2, command: [x]}")
	doc, err := c.Nodes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w.Node = doc.Node
	return w
}

// serveMachine runs and serves a manager of two slots until the test ends.
func serveMachine(t *testing.T, dir string) *api.Client {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	meter := server.NewMeter()
	m, err := manager.Open(t.Context(), manager.Options{Dir: dir, Devices: device.Slots(2), Place: "slots",
		Unit:   "slot",
		System: "fifo-skip", Shim: []string{exe, "shim"}, Sinks: []eventlog.Sink{meter}, Decided: meter.Decided})
	if err != nil {
		t.Fatal(err)
	}
	door, err := access.New(access.Options{Dir: m.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	answers, err := server.New(server.Options{Host: m, Site: manager.NewSite(m, door), Meter: meter, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := door.Listen(answers)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- m.Run(ctx) }()
	c, err := api.Dial(m.Dir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endJobs(t, c)
		cancel()
		if err := <-over; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		stop()
		_ = errors.Join(c.Close(), m.Close())
	})
	return c
}

// endJobs ends what runs, so that no process outlives the test.
func endJobs(t *testing.T, c *api.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), apitest.Patience)
	defer cancel()
	if _, err := c.Drain(ctx, true); err != nil {
		t.Error(err)
	}
	doc, err := c.Jobs(ctx, api.Filter{States: []string{"starting", "running", "stopping"}})
	if err != nil {
		t.Error(err)
	}
	for _, j := range doc.Jobs {
		if _, err := c.Cancel(ctx, j.Ref); err != nil {
			t.Error(err)
		}
		if _, err := c.Wait(ctx, j.Ref); err != nil {
			t.Error(err)
		}
	}
}
