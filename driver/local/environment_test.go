package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/ports"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// surroundings are set in the environment of this process, as a manager's might be.
var surroundings = map[string]string{
	"AWS_SECRET_ACCESS_KEY": "canary", "TRAINYARD_JOB_ID": "canary", "CUDA_VISIBLE_DEVICES": "canary", "LD_PRELOAD": "",
	"TRAINYARD_OTHER": "canary", "TRAINYARD_FAILPOINT": "canary", "XLC_ALL": "canary", "LC_TRAINYARD": "passed",
}

// variables are those of lines as env(1) prints them. A name that is there twice fails the test.
func variables(t *testing.T, lines string) map[string]string {
	t.Helper()
	env := make(map[string]string)
	for line := range strings.Lines(lines) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if _, twice := env[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		env[name] = value
	}
	return env
}

// Ensure that a job has exactly the variables that docs/guide/jobs.md promises, and nothing of its manager's but what
// is passed.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	job := task.Task{Command: []string{"env"}, Dir: t.TempDir(), Grace: 45 * time.Second,
		Env: map[string]string{"DATA": "/data", "LANG": "tlh"}}
	dir := folder(t)
	d := open(t, dir, 1, 3, Arrival{Spec: sched.JobSpec{GPUs: sched.Rigid(2), GPUMemGB: 1.5,
		Share: sched.ShareAllow, Task: job.Encode()}})
	d.o.Peak = func(sched.JobID) float32 { return 1.75 } // measured, which counts where it is more
	t.Cleanup(d.Close)
	h := take(t, d, sched.View{})
	h.arrivals(1)
	order := start(0, 2, 0, 2)
	order.Share = sched.Shared
	order.Batch, order.Accum, order.LRScale = 96, 3, 0.5
	h.apply(order)
	h.end(0, sched.Finished)
	env := variables(t, h.output(0, 2))

	want := map[string]string{
		"DATA": "/data", "LANG": "tlh", "LC_TRAINYARD": "passed",
		"TRAINYARD_JOB_ID": "0", "TRAINYARD_ATTEMPT": "2", "TRAINYARD_NUM_GPUS": "2",
		"TRAINYARD_DEVICES":        "slot-0,slot-2",
		"TRAINYARD_CHECKPOINT_DIR": filepath.Join(dir, "jobs", "0", "checkpoint"),
		"TRAINYARD_RUN_DIR":        filepath.Join(dir, "jobs", "0", "2"),
		"TRAINYARD_RESUME":         "1", "TRAINYARD_GRACE_SECONDS": "45", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "35",
		"TRAINYARD_BATCH_GLOBAL": "96", "TRAINYARD_BATCH_PER_GPU": "16", "TRAINYARD_BATCH_ACCUM": "3",
		"TRAINYARD_LR_SCALE": "0.5", "TRAINYARD_GPU_MEMORY_MIB": "1792",
		"CUDA_VISIBLE_DEVICES": "", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": env["MASTER_PORT"],
		"PET_NPROC_PER_NODE": "2", "PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": env["MASTER_PORT"],
		"TRAINYARD_COOKIE": env["TRAINYARD_COOKIE"], "TRAINYARD_PORTS": portsFrom(env["MASTER_PORT"]),
	}
	if path := socketPath(shim.RunDir(filepath.Join(dir, "jobs", "0", "2"))); path != "" {
		want["TRAINYARD_SOCKET"] = path
	}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if _, set := want[name]; !set && (slices.Contains(passed, name) || strings.HasPrefix(name, "LC_")) {
			want[name] = value
		}
	}
	for name, value := range want {
		if got, ok := env[name]; !ok || got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	for name, value := range env {
		if _, ok := want[name]; !ok {
			t.Errorf("%s=%s, want no such variable", name, value)
		}
	}
	if env["MASTER_PORT"] == "" || env["TRAINYARD_COOKIE"] == "" {
		t.Errorf("port %q, cookie %q", env["MASTER_PORT"], env["TRAINYARD_COOKIE"])
	}
}

// portsFrom names the ports of a lease by its first.
func portsFrom(first string) string {
	n, _ := strconv.Atoi(first)
	return (&ports.Lease{First: n}).String()
}

// Ensure that a job has its port to itself, also next to one whose processes have not met yet and one that an earlier
// driver started, and may give torchrun another width.
func TestPorts(t *testing.T) {
	t.Parallel()
	job := task.Task{Env: map[string]string{"PET_NPROC_PER_NODE": "gpu"}}
	env, err := environment(&shim.Order{}, &sched.Action{}, job, nil, around(device.Slots(1)))
	if err != nil {
		t.Fatal(err)
	}
	if value, _ := last(env, "PET_NPROC_PER_NODE"); value != "gpu" {
		t.Errorf("PET_NPROC_PER_NODE=%s, want what the job says", value)
	}
	dir := folder(t)
	list, _ := jobs(t, time.Second, "exec sleep 300", "exec sleep 300")
	d := open(t, dir, 1, 2, list...)
	h := take(t, d, sched.View{})
	h.arrivals(2)
	h.apply(start(0, 1, 0), start(1, 1, 1))
	h.await(sched.AttemptStarted, 0)
	h.await(sched.AttemptStarted, 1)
	first := meetings(t, dir, 2)
	if first[0] == first[1] {
		t.Errorf("both jobs meet at port %s, want two", first[0])
	}
	view := known(d, sched.Job{Attempt: sched.Running, Attempts: 1, Up: true})
	view.Jobs = append(view.Jobs, view.Jobs[0])
	view.Jobs[1].GPUs = []sched.GPUID{1}
	d.Close()
	d = open(t, dir, 2, 2, list...)
	t.Cleanup(d.Close)
	take(t, d, view)
	for _, port := range first { // their shims have the leases, not the driver that took them
		n, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		if l, err := ports.NewPool(ports.Range{First: n, Last: n + ports.Count - 1}, 0).Take(); err == nil {
			l.Close()
			t.Errorf("port %d of a job that runs is leased again", n)
		}
	}
}

// meetings returns the ports at which the first attempts of n jobs meet.
func meetings(t *testing.T, dir string, n int32) (list []string) {
	t.Helper()
	for j := range n {
		o, err := shim.State(dir).RunDir(j, 1).Order()
		if err != nil {
			t.Fatal(err)
		}
		port, _ := last(o.Env, "MASTER_PORT")
		list = append(list, port)
	}
	return list
}

// around is what an attempt on devices has around it.
func around(devices device.Backend) *surrounding {
	return &surrounding{devices: devices, lease: &ports.Lease{First: 20480}}
}

// last returns the value that counts where a name is there more than once.
func last(env []string, name string) (value string, ok bool) {
	for _, kv := range env {
		if v, is := strings.CutPrefix(kv, name+"="); is {
			value, ok = v, true
		}
	}
	return value, ok
}

// Ensure that what the driver sets stands over what the job asks for, and the details of what it sets.
func TestEnvironmentOf(t *testing.T) {
	t.Parallel()
	order := &shim.Order{State: "/state", Job: 3, Attempt: 1, Devices: []string{"GPU-a", "GPU-b"}}
	held := []device.Device{{Name: "GPU-a"}, {Name: "GPU-b"}}
	job := task.Task{Grace: 5 * time.Second,
		Env: map[string]string{"TRAINYARD_JOB_ID": "99", "CUDA_VISIBLE_DEVICES": "all", "MASTER_ADDR": "x"}}
	for _, c := range []struct {
		name    string
		action  sched.Action
		devices device.Backend
		want    map[string]string
		without string
	}{
		{"GPUs", sched.Action{Job: 3, Attempt: 1}, &device.SMI{},
			map[string]string{"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b", "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
				"TRAINYARD_JOB_ID": "3", "MASTER_ADDR": "127.0.0.1", "TRAINYARD_RESUME": "0",
				"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "1"}, "TRAINYARD_BATCH_GLOBAL"},
		{"slots", sched.Action{Job: 3, Attempt: 1}, device.Slots(2), map[string]string{"CUDA_VISIBLE_DEVICES": ""},
			"CUDA_DEVICE_ORDER"},
		{"batch below the width", sched.Action{Job: 3, Attempt: 1, Config: sched.Config{Batch: 1}}, device.Slots(2),
			map[string]string{"TRAINYARD_BATCH_GLOBAL": "1",
				"TRAINYARD_BATCH_PER_GPU": "1"}, "CUDA_DEVICE_ORDER"},
		{"batch alone", sched.Action{Job: 3, Attempt: 1, Config: sched.Config{Batch: 8}}, device.Slots(2),
			map[string]string{"TRAINYARD_BATCH_GLOBAL": "8",
				"TRAINYARD_BATCH_PER_GPU": "4", "TRAINYARD_LR_SCALE": "1"}, "AWS_SECRET_ACCESS_KEY"},
	} {
		env, err := environment(order, &c.action, job, held, around(c.devices))
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range c.want {
			if got, _ := last(env, name); got != want {
				t.Errorf("%s: %s is %q, want %q", c.name, name, got, want)
			}
		}
		if v, ok := last(env, c.without); ok {
			t.Errorf("%s: %s=%s, want none", c.name, c.without, v)
		}
	}
}

// Ensure that our variables are replaced in arguments, and nothing else is.
func TestReplaced(t *testing.T) {
	t.Parallel()
	env := []string{"TRAINYARD_NUM_GPUS=1", "TRAINYARD_NUM_GPUS=4", "TRAINYARD_RUN_DIR=/a $HOME/$TRAINYARD_NUM_GPUS",
		"HOME=/h", "MASTER_PORT=20480", "PET_NPROC_PER_NODE=2", "CUDA_VISIBLE_DEVICES=0,1"}
	for arg, want := range map[string]string{
		"--nproc-per-node=$TRAINYARD_NUM_GPUS":           "--nproc-per-node=4",
		"${TRAINYARD_NUM_GPUS}x$TRAINYARD_NUM_GPUS":      "4x4",
		"$TRAINYARD_RUN_DIR/x":                           "/a $HOME/$TRAINYARD_NUM_GPUS/x", // once
		"$$TRAINYARD_NUM_GPUS $${TRAINYARD_NUM_GPUS}":    "$TRAINYARD_NUM_GPUS ${TRAINYARD_NUM_GPUS}",
		"kill $$; $HOME ${HOME} $1 $TRAINYARD ${}":       "kill $$; $HOME ${HOME} $1 $TRAINYARD ${}",
		"${TRAINYARD_BATCH_GLOBAL:-64} $TRAINYARD_OTHER": "${TRAINYARD_BATCH_GLOBAL:-64} $TRAINYARD_OTHER",
		"$TRAINYARD_NUM_GPUS2":                           "$TRAINYARD_NUM_GPUS2",
		"$MASTER_PORT ${MASTER_PORT} $$MASTER_PORT":      "20480 20480 $MASTER_PORT",
		"$MASTER_PORT2 $MASTER_PORT_X $MASTER":           "$MASTER_PORT2 $MASTER_PORT_X $MASTER",
		"-n$PET_NPROC_PER_NODE:$CUDA_VISIBLE_DEVICES":    "-n2:0,1",
		"$MASTER_ADDR:$MASTER_PORT":                      "$MASTER_ADDR:20480",
		"":                                               "",
	} {
		if got := replaced([]string{"x", arg}, env); got[0] != "x" || got[1] != want {
			t.Errorf("%s: %q, want %q", arg, got, want)
		}
	}
}

// Ensure that only a file is read for the value of a variable, through links, and that nothing else keeps the engine
// waiting.
func TestFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(path("file"), []byte("secret\n"), 0o600), os.Symlink("file", path("link")),
		unix.Mkfifo(path("pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"file": "secret", "link": "secret", "pipe": "", "missing": "", ".": ""} {
		type answer struct {
			env []string
			err error
		}
		answered := make(chan answer, 1)
		go func() {
			env, err := fromFiles(map[string]string{"TOKEN": path(name)})
			answered <- answer{env, err}
		}()
		select {
		case a := <-answered:
			if want == "" && a.err == nil ||
				want != "" && (a.err != nil || !slices.Equal(a.env, []string{"TOKEN=" + want})) {
				t.Errorf("%s: %q, %v, want %q", name, a.env, a.err, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: it is waited for", name)
		}
	}
}
