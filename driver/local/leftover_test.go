package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that an attempt starts although a group of processes has its name: one of a folder that was removed, and made
// again, while no manager was there to clear up.
func TestGroupOfFolderBefore(t *testing.T) {
	root := procs.Root()
	if root == "" {
		t.Log("no cgroup v2 to make groups in: there are no names to meet again")
		return
	}
	dir := folder(t)
	o := shim.Order{State: shim.State(dir), Job: 0, Attempt: 1}
	if err := os.Mkdir(filepath.Join(root, o.GroupName()), 0o755); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir, 1, 1, arrival(t, 0, 1, "exit 0"))
	t.Cleanup(d.Close)
	h := take(t, d, sched.View{})
	h.arrivals(1)
	h.apply(start(0, 1, 0))
	h.end(0, sched.Finished)
	if _, err := os.Stat(filepath.Join(root, o.GroupName())); err == nil {
		t.Error("the group is left")
	}
}
