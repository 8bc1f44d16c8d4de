//go:build linux

package procs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Ensure that the process's own v2 cgroup is found on machines with v2 alone, with both, and in containers.
// Ensure that those whom the kernel killed are counted, and nothing else of the file.
func TestOOMKills(t *testing.T) {
	t.Parallel()
	for events, want := range map[string]int{"": 0, "low 0\nhigh 3\nmax 9\noom 2\noom_kill 0\noom_group_kill 0\n": 0,
		"oom 2\noom_kill 12\n": 12} {
		if got := oomKills(events); got != want {
			t.Errorf("%q: %d, want %d", events, got, want)
		}
	}
}

func TestOwnDirs(t *testing.T) {
	const (
		pure   = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup " +
			"cgroup rw,name=systemd\n" +
			"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
		inside = "41 31 0:38 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
		spaces = `41 31 0:38 / /mnt/a\040b\134c rw - cgroup2 cgroup2 rw` + "\n"
	)
	for _, c := range []struct {
		name, mounts, own string
		want              []string
	}{
		{"pure", pure, "0::/user.slice/a.scope\n", []string{"/sys/fs/cgroup/user.slice/a.scope"}},
		{"hybrid", hybrid, "2:cpu:/x\n1:name=systemd:/y\n0::/\n", []string{"/sys/fs/cgroup/unified"}},
		{"a container without a namespace", inside, "0::/docker/ab/c\n", []string{"/sys/fs/cgroup/c"}},
		{"mounted is another", inside, "0::/docker/abc\n", nil},
		{"mounted twice", pure + spaces, "0::/x\n", []string{"/sys/fs/cgroup/x", `/mnt/a b\c/x`}},
		{"outside the namespace", pure, "0::/../x\n", nil},
		{"removed", pure, "0::/x (deleted)\n", nil},
		{"only v1", "40 31 0:37 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "1:cpu:/\n", nil},
		{"nothing", "", "", nil},
	} {
		if got := ownDirs(c.mounts, c.own); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// Ensure that groups are made next to the subgroup of a unit, and not above other cgroups.
func TestRootsFor(t *testing.T) {
	t.Parallel()
	const unit = "/sys/fs/cgroup/system.slice/trainyard.service"
	for own, want := range map[string][]string{
		unit + "/" + Subgroup: {unit, unit + "/" + Subgroup}, unit: {unit}, unit + "/other": {unit + "/other"},
		"/sys/fs/cgroup/" + Subgroup: {"/sys/fs/cgroup/" + Subgroup}, "/sys/fs/cgroup": {"/sys/fs/cgroup"},
	} {
		if got := rootsFor(own); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", own, got, want)
		}
	}
}

// Ensure that trying leaves nothing behind, and that a directory which is no cgroup is refused.
func TestRoot(t *testing.T) {
	root := Root()
	if root == "" {
		t.Log("no cgroup v2 to make groups in")
		return
	}
	if again := Root(); again != root {
		t.Errorf("root %q, then %q", root, again)
	}
	left, err := filepath.Glob(filepath.Join(root, probePrefix()+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, error %v", left, err)
	}
	plain := t.TempDir()
	if err := os.WriteFile(filepath.Join(plain, "cgroup.procs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{plain, filepath.Join(t.TempDir(), "absent")} {
		if usable(dir) {
			t.Errorf("%s: usable", dir)
		}
	}
}

// Ensure that a cgroup that is not there is empty, and removed.
func TestMissingCgroup(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("gone/", 2))
	pids, err := pidsIn(dir)
	if err != nil || len(pids) > 0 {
		t.Errorf("pids %v, error %v, want none", pids, err)
	}
	if alive, err := populated(dir); alive || err != nil {
		t.Errorf("populated %v, error %v, want false", alive, err)
	}
	if err := removeAll(dir); err != nil {
		t.Error(err)
	}
}

// Ensure that of the probes that are left those are removed that are empty, old and of a process that is gone, and
// nothing else.
func TestSweepProbes(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	gone := fmt.Sprintf("trainyard-probe-%d-", dead.Process.Pid)
	dir := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{gone + "1": time.Hour, gone + "2": time.Second,
		gone + "3/inside":   time.Hour,
		probePrefix() + "1": time.Hour, "trainyard-probe-x-1": time.Hour, "trainyard-probe--1-1": time.Hour,
		"other": time.Hour} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		for ; path != dir; path = filepath.Dir(path) {
			if err := os.Chtimes(path, time.Time{}, now.Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
	}
	sweepProbes(dir, now)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{"other", "trainyard-probe--1-1", gone + "2", gone + "3", probePrefix() + "1",
		"trainyard-probe-x-1"}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
}
