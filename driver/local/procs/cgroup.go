//go:build linux

package procs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Root returns the cgroup v2 directory of the calling process if it may make groups in it that can be killed, else "".
//
// It tries: a directory is made and removed again. No process is moved and no other group is touched. The answer
// depends on where the process lives and what it may do, so whoever reopens a group later keeps the root the group was
// made with. Under systemd the unit needs Delegate=yes, and KillMode=process if the groups are to outlive it. With
// DelegateSubgroup=Subgroup the answer is the unit's own cgroup, where no process is, so that groups may have limits.
func Root() string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for _, own := range ownDirs(string(mounts), string(own)) {
		for _, dir := range rootsFor(own) {
			if usable(dir) {
				return dir
			}
		}
	}
	return ""
}

// rootsFor returns where groups of a process in a cgroup may be made, the best first: the unit around its Subgroup,
// else its own.
func rootsFor(own string) []string {
	unit, name := filepath.Split(own)
	if unit = filepath.Clean(unit); name == Subgroup && strings.HasSuffix(unit, ".service") {
		return []string{unit, own}
	}
	return []string{own}
}

// IsCgroup reports whether dir is a directory of cgroup v2 by its own name, with no link on the way: a name that others
// may have chosen is no group to kill before.
func IsCgroup(dir string) bool {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		return false
	}
	plain, err := filepath.EvalSymlinks(dir)
	return err == nil && plain == dir
}

// ownDirs returns where the process's own v2 cgroup is mounted, given its mountinfo and cgroup files in /proc. It may
// be the only hierarchy, or one next to those of v1 ("hybrid", mostly /sys/fs/cgroup/unified).
func ownDirs(mountinfo, cgroup string) []string {
	own := ""
	for line := range strings.Lines(cgroup) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			own = p
		}
	}
	if !strings.HasPrefix(own, "/") || strings.HasPrefix(own, "/..") || strings.HasSuffix(own, " (deleted)") {
		return nil
	}
	var dirs []string
	for line := range strings.Lines(mountinfo) {
		// 41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw: see proc_pid_mountinfo(5)
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		root, point := unescape(fields[3]), unescape(fields[4])
		if root == "/" {
			root = ""
		}
		if rest, ok := strings.CutPrefix(own, root); ok && (rest == "" || rest[0] == '/') {
			dirs = append(dirs, path.Join(point, rest))
		}
	}
	return dirs
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// usable says whether groups can be made and killed in dir. Birth in a group needs the right to write to the
// cgroup.procs of the common ancestor, which is dir; opening that file changes nothing.
func usable(dir string) bool {
	procs, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	procs.Close()
	sweepProbes(dir, time.Now())
	probe, err := os.MkdirTemp(dir, probePrefix())
	if err != nil {
		return false
	}
	defer os.Remove(probe)
	kind, err := os.ReadFile(filepath.Join(probe, "cgroup.type"))
	if err != nil || strings.TrimSpace(string(kind)) != "domain" {
		return false
	}
	_, err = os.Stat(filepath.Join(probe, "cgroup.kill"))
	return err == nil
}

// probePrefix starts the names of the groups that this process makes to see whether it can: others may try next to it.
func probePrefix() string { return fmt.Sprintf("%s%d-", probeName, os.Getpid()) }

const (
	probeName = "trainyard-probe-"
	probeOld  = time.Minute // a pid may be unknown here for being of another namespace: no probe takes that long
)

// sweepProbes removes the empty probes in dir of processes that died before they could.
func sweepProbes(dir string, now time.Time) {
	probes, err := filepath.Glob(filepath.Join(dir, probeName+"*"))
	if err != nil {
		return
	}
	for _, probe := range probes {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(probe), probeName), "-")
		pid, err := strconv.Atoi(number)
		if err != nil || pid <= 0 || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		if info, err := os.Lstat(probe); err == nil && info.IsDir() && now.Sub(info.ModTime()) > probeOld {
			_ = syscall.Rmdir(probe) // refused where something is in it
		}
	}
}

// subdirs returns dir and the directories below it, parents first; none if dir does not exist.
func subdirs(dir string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if removed(err) {
			return nil
		}
		if err == nil && d.IsDir() {
			dirs = append(dirs, p)
		}
		return err
	})
	return dirs, err
}

// pidsIn returns the pids in the cgroup and those below it.
func pidsIn(dir string) (map[int]bool, error) {
	dirs, err := subdirs(dir)
	if err != nil {
		return nil, err
	}
	pids := map[int]bool{}
	for _, d := range dirs {
		data, err := os.ReadFile(filepath.Join(d, "cgroup.procs"))
		if removed(err) || errors.Is(err, syscall.EOPNOTSUPP) {
			continue // the processes of a threaded cgroup are listed above it
		}
		if err != nil {
			return nil, err
		}
		for field := range strings.FieldsSeq(string(data)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d, err)
			}
			pids[pid] = true
		}
	}
	return pids, nil
}

// populated says whether a live process is in the cgroup or below it.
func populated(dir string) (bool, error) {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	if removed(err) {
		return false, nil
	}
	return strings.Contains(string(data), "populated 1"), err
}

// OutOfMemory reports whether the kernel killed a member for want of memory. It is known only in a cgroup with the
// controller of memory; elsewhere it is false.
func (g *Group) OutOfMemory() bool {
	if g.dir == "" {
		return false
	}
	data, err := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	return err == nil && oomKills(string(data)) > 0
}

// oomKills returns how many were killed, those of cgroups below included, by a file memory.events.
func oomKills(events string) int {
	for line := range strings.Lines(events) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			kills, _ := strconv.Atoi(strings.TrimSpace(n))
			return kills
		}
	}
	return 0
}

// write1 writes "1" to an existing file. Making one, as os.WriteFile would, is a wrong answer in cgroupfs: permission
// denied instead of not there.
func write1(file string) error { return write(file, "1") }

// removed says whether the error is that of a cgroup that has been removed.
func removed(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}

// removeAll removes the cgroup and those below it.
func removeAll(dir string) error {
	dirs, err := subdirs(dir)
	if err != nil {
		return err
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := remove(dirs[i]); err != nil {
			return err
		}
	}
	return nil
}

// remove removes one empty cgroup. A process that is past its last signal may hold it for an instant after the group
// says that it is not populated.
func remove(dir string) error {
	for try := 0; ; try++ {
		err := syscall.Rmdir(dir)
		switch {
		case err == nil || removed(err):
			return nil
		case !errors.Is(err, syscall.EBUSY) || try == 10:
			return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
		}
		time.Sleep(5 * time.Millisecond)
	}
}
