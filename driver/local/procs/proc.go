//go:build linux

package procs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Subreap makes the calling process the parent of every orphan among its descendants. It then has to reap them.
func Subreap() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("procs: become a subreaper: %w", err)
	}
	return nil
}

// StartTime returns when the process started, in clock ticks (1/100 s) since boot: field 22 of /proc/PID/stat. Together
// with the pid and BootID it names a process for good, for pids are used again. The error of a process that does not
// exist is fs.ErrNotExist.
func StartTime(pid int) (uint64, error) {
	p, err := readProc(pid)
	if vanished(err) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return 0, fmt.Errorf("procs: start time of pid %d: %w", pid, err)
	}
	return p.start, nil
}

// Lives reports whether the process that started at start, see StartTime, is there and no zombie: one that has ended
// stays in the table until its parent asks for its end.
func Lives(pid int, start uint64) (bool, error) {
	p, err := readProc(pid)
	if vanished(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("procs: state of pid %d: %w", pid, err)
	}
	return p.start == start && !p.zombie, nil
}

// BootID returns the kernel's identifier of this boot, a UUID.
func BootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("procs: boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// proc is a process as a look at /proc showed it.
type proc struct {
	pid, parent, session int
	// group is the process group, or 0 where its other processes may be no members; set by closure.
	group int

	start  uint64 // clock ticks since boot
	zombie bool   // dead, and not yet reaped
	// headless: the first thread has ended, others live. It looks like a zombie and has no /proc/PID/environ.
	headless bool
	marked   bool // the cookie is in its first environment
}

// scan looks once at every process there is, or where that is enough at those who were forked after a mark. Those that
// vanish meanwhile are left out. Any error but that is returned: a table of processes with holes would pass for a group
// that is gone.
func scan(cookie string, after Mark) ([]proc, error) {
	if few, known, err := since(after, cookie); known || err != nil {
		return few, err
	}
	return scanAll(cookie, after)
}

func scanAll(cookie string, after Mark) ([]proc, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var all []proc
	for {
		names, err := someNames(dir)
		if err != nil || len(names) == 0 {
			return all, err
		}
		for _, name := range names {
			pid, err := strconv.Atoi(name)
			if err != nil {
				continue
			}
			p, err := inspect(pid, cookie, after)
			switch {
			case err == nil:
				all = append(all, p)
			case !vanished(err):
				return nil, err
			}
		}
	}
}

// someNames returns the next few names in the directory, none at its end. /proc lists pids in ascending order as they
// are when asked, so that a process which keeps forking and exiting, always a pid ahead of a list made at once, is met
// while it lives. os.File would ask for hundreds at a time.
func someNames(dir *os.File) ([]string, error) {
	var buffer [280]byte // the longest name there can be (255), or eleven pids
	for {
		n, err := unix.ReadDirent(int(dir.Fd()), buffer[:])
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if n <= 0 || err != nil {
			return nil, os.NewSyscallError("getdents", err)
		}
		// "." and ".." are left out, so that there may be none although more follow.
		if _, _, names := unix.ParseDirent(buffer[:n], -1, nil); len(names) > 0 {
			return names, nil
		}
	}
}

// inspect reads stat before environ: should the pid pass to another process in between, the start time is the old one,
// and signal refuses it. Whoever started before the mark has no cookie.
func inspect(pid int, cookie string, after Mark) (proc, error) {
	p, err := readProc(pid)
	if err != nil || p.zombie || cookie == "" || p.start < after.ticks {
		return p, err
	}
	paths := []string{fmt.Sprintf("/proc/%d/environ", pid)}
	if p.headless {
		paths, err = filepath.Glob(fmt.Sprintf("/proc/%d/task/*/environ", pid))
	}
	for _, path := range paths {
		var data []byte
		data, err = os.ReadFile(path)
		if errors.Is(err, fs.ErrPermission) || vanished(err) {
			err = nil // of another user or not dumpable; a kernel thread; just ended
		}
		p.marked = p.marked || contains(data, cookie)
	}
	return p, err
}

// contains says whether one of the NUL-terminated strings is s.
func contains(list []byte, s string) bool {
	for item := range bytes.SplitSeq(list, []byte{0}) {
		if string(item) == s {
			return true
		}
	}
	return false
}

func readProc(pid int) (proc, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, err
	}
	p, err := parseStat(string(data))
	if err != nil {
		return proc{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	p.pid = pid
	return p, nil
}

// parseStat reads the fields after the command's name, which stands in parentheses and may contain any character: see
// proc_pid_stat(5). The pid is the caller's to fill in.
func parseStat(line string) (proc, error) {
	// the page counts from the pid and 1: add 3
	const state, parent, group, session, threads, start = 0, 1, 2, 3, 17, 19
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(fields) <= start {
		return proc{}, fmt.Errorf("%d fields after the name, want more than %d", len(fields), start)
	}
	var p proc
	var errs [5]error
	var count int
	p.parent, errs[0] = strconv.Atoi(fields[parent])
	p.group, errs[1] = strconv.Atoi(fields[group])
	p.session, errs[2] = strconv.Atoi(fields[session])
	count, errs[3] = strconv.Atoi(fields[threads])
	p.start, errs[4] = strconv.ParseUint(fields[start], 10, 64)
	dead := fields[state] == "Z" || fields[state] == "X"
	p.headless = dead && count > 1
	p.zombie = dead && !p.headless
	return p, errors.Join(errs[:]...)
}

// vanished says whether the error is that of a process that has ended.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// signal sends sig to the very process that was looked at, and says if it has ended. The pidfd is taken first and the
// start time compared after, so that what is signalled is what was compared.
func (p proc) signal(sig syscall.Signal) (ended bool, err error) {
	if p.pid <= 1 || p.pid == os.Getpid() {
		panic(fmt.Sprintf("procs: pid %d as a member", p.pid))
	}
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return false, fmt.Errorf("pid %d: %w", p.pid, err)
	}
	defer func() { _ = handle.Release() }()
	now, err := readProc(p.pid)
	if err == nil && now.start != p.start {
		return true, nil
	}
	if err == nil {
		err = handle.Signal(sig)
	}
	if vanished(err) || errors.Is(err, os.ErrProcessDone) {
		return true, nil
	}
	if err != nil {
		err = fmt.Errorf("pid %d: %w", p.pid, err)
	}
	return false, err
}

// lastPID returns the pid most recently given to a process or thread, or "" if that cannot be known. When two looks
// find the same, nothing was forked in between.
func lastPID() string {
	data, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(data))
	if err != nil || len(fields) == 0 {
		return ""
	}
	return fields[len(fields)-1]
}
