//go:build linux

package procs

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// WithLastArgument returns the live processes whose command line ends in an argument, in the order of their pids: of
// those with the given pids, or of all where none is given. Never among them are the caller and processes of other
// users, who may write what they like on their command lines. It is one look at moving targets; what cannot be read is
// left out.
func WithLastArgument(argument string, pids ...int) (list []Member) {
	if len(pids) == 0 {
		entries, _ := os.ReadDir("/proc") // no process is found where it cannot be read
		for _, entry := range entries {
			if pid, err := strconv.Atoi(entry.Name()); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	for _, pid := range pids {
		if pid <= 1 || pid == os.Getpid() {
			continue
		}
		p, err := readProc(pid)
		if err != nil || p.zombie {
			continue
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || !strings.HasSuffix(string(line), "\x00"+argument+"\x00") {
			continue
		}
		m := Member{PID: pid, Parent: p.parent, Start: p.start}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err == nil && isOf(os.Getuid(), string(status)) {
			m.describe(string(status), syscall.SIGCONT)
			list = append(list, m)
		}
	}
	return list
}

// isOf reports whether the file status of proc_pid_status(5) is that of a process whose real user has a number.
func isOf(uid int, status string) bool {
	for line := range strings.Lines(status) {
		if ids, found := strings.CutPrefix(line, "Uid:"); found {
			fields := strings.Fields(ids)
			return len(fields) > 0 && fields[0] == strconv.Itoa(uid)
		}
	}
	return false
}
