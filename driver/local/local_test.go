package local

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/drivertest"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/driver/local/shim/shimtest"
	"github.com/trainyard/trainyard/sched"
)

// TestMain makes this binary a shim where the driver starts it as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "shim" {
		os.Exit(shim.Main(shim.RunDir(os.Args[2])))
	}
	if launcher, ok := standIns[filepath.Base(os.Args[0])]; ok {
		os.Exit(play(launcher))
	}
	// of shims: else each takes a second to end under -race
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	for name, value := range surroundings {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// arrival returns a job of n GPUs that runs a shell script.
func arrival(t *testing.T, at time.Duration, n int, script string) Arrival {
	t.Helper()
	job := task.Task{Command: []string{"sh", "-c", script}, Dir: t.TempDir(), Grace: 2 * time.Second}
	return Arrival{At: at, Spec: sched.JobSpec{Name: script, GPUs: sched.Rigid(n), Task: job.Encode()}}
}

// open returns a driver of n slots on a folder, as the manager of the given epoch has it.
func open(t *testing.T, folder string, epoch int64, n int, jobs ...Arrival) *Driver {
	t.Helper()
	return openWith(t, Options{State: shim.State(folder), Epoch: epoch, Devices: device.Slots(n), Jobs: jobs})
}

// openWith returns a driver with these options, whose shims are this program.
func openWith(t *testing.T, o Options) *Driver {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o.Origin, o.Node, o.Shim = time.Now(), "here", []string{exe, "shim"}
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// folder returns a state folder in which nothing runs any more once the test is over.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { shimtest.EndAll(t, shim.State(dir)) })
	return dir
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, func(t *testing.T) (sched.Driver, drivertest.Bench) {
		d := open(t, folder(t), 1, 2,
			arrival(t, 0, 1, "exec sleep 2.5"), arrival(t, time.Millisecond, 1, "exec sleep 0.05"),
			arrival(t, 2*time.Millisecond, 1, "exec sleep 2.5"))
		t.Cleanup(d.Close)
		return d, drivertest.Bench{Short: 250 * time.Millisecond, Long: time.Second}
	})
}
