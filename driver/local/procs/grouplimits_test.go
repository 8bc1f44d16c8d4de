//go:build linux

package procs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Ensure that the folder of a controller of version 1 is found where this process is in it, also where several share a
// mount, and that what is not mounted, removed or outside is not.
func TestOldDir(t *testing.T) {
	t.Parallel()
	const mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
		"33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"34 31 0:31 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n" +
		"35 31 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	for _, c := range []struct{ own, controller, want string }{
		{"3:cpu,cpuacct:/x\n0::/y\n", "cpu", "/sys/fs/cgroup/cpu,cpuacct/x"},
		{"3:cpu,cpuacct:/\n", "cpu", "/sys/fs/cgroup/cpu,cpuacct"},
		{"4:memory:/docker/ab/c\n", "memory", "/sys/fs/cgroup/memory/c"},
		{"4:memory:/docker/abc\n", "memory", ""}, {"4:memory:/x (deleted)\n", "memory", ""},
		{"4:cpuset:/x\n", "cpu", ""}, {"4:memory:/../x\n", "memory", ""}, {"", "memory", ""},
	} {
		if got := oldDir(mounts, c.own, c.controller); got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.controller, c.own, got, c.want)
		}
	}
}

// Ensure that a group is held to its memory and its processors where it can be, that what it used is known, that this
// process is where it was, and that nothing is left behind.
func TestLimit(t *testing.T) {
	root := Root()
	if !CanLimit(root) {
		t.Log("no cgroup with memory and cpu to make groups in")
		return
	}
	before, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(root, "trainyard-limits-test", "TRAINYARD_LIMITS=1")
	if err != nil {
		t.Fatal(err)
	}
	if err = g.Limit(Limits{CPUs: 0.2, Memory: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	memory := g.limits.memory
	cmd := exec.Command("sh", "-c", "head -c 300000000 /dev/zero | tail -c 299999999 > /dev/null")
	if err = g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the shell may say that a part of it was killed
	if used, killed := g.Memory(); !killed || used < 48<<20 || used > 64<<20 {
		t.Errorf("used %d bytes, killed %v, want it killed at 64 MiB", used, killed)
	}
	if g.limits.old { // its maker is gone, and it is made again
		again := Open(root, g.name, g.cookie)
		if err = again.Limit(Limits{CPUs: 1, Memory: 64 << 20}); err != nil {
			t.Fatal(err)
		}
		if used, killed := again.Memory(); killed || used > 16<<20 {
			t.Errorf("before anything ran: used %d bytes, killed %v, want what was before forgotten", used, killed)
		}
	}
	if err = g.Close(); err != nil {
		t.Error(err)
	}
	if after, _ := os.ReadFile("/proc/self/cgroup"); string(after) != string(before) {
		t.Errorf("was in\n%s\nis in\n%s", before, after)
	}
	if left, _ := filepath.Glob(memory); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
