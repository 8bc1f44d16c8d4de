package whatifs

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes has a process end with this program, in a group of its own.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// limit has a process give way to all others, and bounds its memory. It goes on without where that fails: it may have
// ended.
func limit(pid int) {
	_ = syscall.Setpriority(syscall.PRIO_PGRP, pid, 19)
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: Memory, Max: Memory}, nil)
}
