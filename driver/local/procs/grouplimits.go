//go:build linux

package procs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Limits are what the processes of a group may take together. The zero value: no limit.
type Limits struct {
	CPUs   float64 // processors, 0 = no limit
	Memory int64   // bytes, 0 = no limit
}

// cpuPeriod is the span, in microseconds, in which a group may use its processors for so long.
const cpuPeriod = 100_000

// leastQuota is the shortest time that the kernel takes for a span, in microseconds.
const leastQuota = 1_000

// quota is how long a group may use processors in each span.
func (l Limits) quota() string {
	return strconv.FormatInt(max(int64(l.CPUs*cpuPeriod), leastQuota), 10)
}

// limiter is where limits of a group are: in its own cgroup of version 2, or in one of version 1 for each controller.
type limiter struct {
	memory, cpu string   // folders; "" = none
	old         bool     // they are of version 1
	home        []string // where this process is in these
}

// CanLimit reports whether groups below root, as Root returned it, may be given limits of processors and memory. It
// tries, and leaves nothing behind.
func CanLimit(root string) bool {
	name := probePrefix() + "limits"
	if root != "" {
		dir := filepath.Join(root, name)
		if os.Mkdir(dir, 0o755) == nil {
			defer os.Remove(dir)
		}
	}
	l, err := newLimiter(root, name)
	if err != nil {
		return false
	}
	l.close()
	return true
}

// newLimiter finds where a group of a name below root is given limits, and makes what is not there.
func newLimiter(root, name string) (*limiter, error) {
	if root != "" {
		_ = write(filepath.Join(root, "cgroup.subtree_control"), "+memory +cpu") // refused where processes are in it
		dir := filepath.Join(root, name)
		if exists(filepath.Join(dir, "memory.max")) && exists(filepath.Join(dir, "cpu.max")) {
			return &limiter{memory: dir, cpu: dir}, nil
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	l := &limiter{old: true}
	for controller, at := range map[string]*string{"memory": &l.memory, "cpu": &l.cpu} {
		home := oldDir(string(mounts), string(own), controller)
		if home == "" {
			err = fmt.Errorf("procs: no cgroup with the controller %s", controller)
			break
		}
		dir := filepath.Join(home, name)
		if err = os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { // it may share one with the other
			break
		}
		err = nil
		*at = dir
		l.home = append(l.home, home)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// oldDir returns where the process's own cgroup of version 1 of a controller is mounted, "" if it is not.
func oldDir(mountinfo, cgroup, controller string) string {
	has := func(list string) bool { return strings.Contains(","+list+",", ","+controller+",") }
	own := ""
	for line := range strings.Lines(cgroup) {
		// 4:memory:/a
		if parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3); len(parts) == 3 && has(parts[1]) {
			own = parts[2]
		}
	}
	if !strings.HasPrefix(own, "/") || strings.HasPrefix(own, "/..") || strings.HasSuffix(own, " (deleted)") {
		return ""
	}
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(kind) < 3 || kind[0] != "cgroup" || !has(kind[2]) {
			continue
		}
		root, point := strings.TrimSuffix(unescape(fields[3]), "/"), unescape(fields[4])
		if rest, ok := strings.CutPrefix(own, root); ok && (rest == "" || rest[0] == '/') {
			return filepath.Join(point, rest)
		}
	}
	return ""
}

// set sets the limits.
func (l *limiter) set(to Limits) error {
	var errs []error
	put := func(dir, name, value string) {
		if err := write(filepath.Join(dir, name), value); err != nil {
			errs = append(errs, fmt.Errorf("procs: limit: %w", err))
		}
	}
	memory := strconv.FormatInt(to.Memory, 10)
	switch {
	case to.Memory == 0:
	case l.old:
		_ = write(filepath.Join(l.memory, "memory.use_hierarchy"), "1") // refused where it is so already
		put(l.memory, "memory.limit_in_bytes", memory)
		_ = write(filepath.Join(l.memory, "memory.memsw.limit_in_bytes"), memory) // not there without swap
	default:
		put(l.memory, "memory.max", memory)
		_ = write(filepath.Join(l.memory, "memory.swap.max"), "0")
	}
	switch {
	case to.CPUs == 0:
	case l.old:
		put(l.cpu, "cpu.cfs_period_us", strconv.Itoa(cpuPeriod))
		put(l.cpu, "cpu.cfs_quota_us", to.quota())
	default:
		put(l.cpu, "cpu.max", to.quota()+" "+strconv.Itoa(cpuPeriod))
	}
	return errors.Join(errs...)
}

// start starts a command within the limits. Version 1 has no birth in a cgroup: the thread that starts it joins before
// and leaves after that, and no memory of this process is counted, which belongs to the first thread.
func (l *limiter) start(cmd *exec.Cmd) error {
	if !l.old {
		return cmd.Start()
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this, wherever it is by then
		err := errors.Join(write(filepath.Join(l.memory, "tasks"), "0"), write(filepath.Join(l.cpu, "tasks"), "0"))
		if err == nil {
			err = cmd.Start()
		}
		for _, home := range l.home {
			_ = write(filepath.Join(home, "tasks"), "0")
		}
		started <- err
	}()
	return <-started
}

// peak returns the most memory that was in use at once, in bytes, and how many processes were killed for want of more.
func (l *limiter) peak() (used int64, kills int) {
	most, events := "memory.peak", "memory.events"
	if l.old {
		most, events = "memory.max_usage_in_bytes", "memory.oom_control"
	}
	if b, err := os.ReadFile(filepath.Join(l.memory, most)); err == nil {
		used, _ = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	}
	b, _ := os.ReadFile(filepath.Join(l.memory, events)) // none: it is not known
	return used, oomKills(string(b))
}

// close removes the cgroups of version 1; those of version 2 are the group's own.
func (l *limiter) close() {
	if !l.old {
		return
	}
	for _, dir := range []string{l.memory, l.cpu} {
		if dir != "" {
			_ = removeAll(dir)
		}
	}
}

// Limit gives the group limits, before anything is started in it. What one of its name that is gone has left is not
// counted. The error says that there can be none here.
func (g *Group) Limit(to Limits) error {
	if to == (Limits{}) {
		return nil
	}
	g.Unlimit()
	root := ""
	if g.dir != "" {
		root = filepath.Dir(g.dir)
	}
	l, err := newLimiter(root, g.name)
	if err != nil {
		return err
	}
	if err = l.set(to); err != nil {
		l.close()
		return err
	}
	g.limits = l
	return nil
}

// Memory returns the most bytes of memory that the group had at once, and whether the kernel killed a member for want
// of more. Both are known only of a group with limits.
func (g *Group) Memory() (used int64, killed bool) {
	if g.limits == nil {
		return 0, false
	}
	used, kills := g.limits.peak()
	return used, kills > 0
}

// Unlimit removes what a process that made the group with limits and died has left of them.
func (g *Group) Unlimit() {
	if g.limits != nil {
		return
	}
	root := ""
	if g.dir != "" {
		root = filepath.Dir(g.dir)
	}
	if l, err := newLimiter(root, g.name); err == nil {
		l.close()
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// write writes text to an existing file.
func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
