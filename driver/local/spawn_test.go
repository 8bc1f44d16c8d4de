package local

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a shim that is this program, however it was replaced since, is called by its name in a list of processes.
func TestShimIsListed(t *testing.T) {
	t.Parallel()
	list, _ := jobs(t, time.Second, "exec sleep 300")
	dir := folder(t)
	d := open(t, dir, 1, 1, list...)
	d.o.Shim = []string{"/proc/self/exe", "shim"}
	t.Cleanup(d.Close)
	h := take(t, d, sched.View{})
	h.arrivals(1)
	h.apply(start(0, 1, 0))
	h.await(sched.AttemptStarted, 0)
	run := shim.State(dir).RunDir(0, 1)
	alive, err := run.Alive()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", alive.PID))
	if got, want := strings.ReplaceAll(string(b), "\x00", " "), "trainyard shim "+string(run)+" "; err != nil || got != want {
		t.Errorf("listed as %q, %v, want %q", got, err, want)
	}
	h.apply(stop(0, 1))
	h.end(0, sched.Preempted)
}
