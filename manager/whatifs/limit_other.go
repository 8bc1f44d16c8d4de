//go:build !linux

package whatifs

import "syscall"

// attributes has a process in a group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// limit has a process give way to all others.
func limit(pid int) { _ = syscall.Setpriority(syscall.PRIO_PGRP, pid, 19) }
