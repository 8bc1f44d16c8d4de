package controlplane

import "syscall"

// attributes puts a server in a group of its own, out of reach of the terminal's Ctrl-C, and has it killed when the
// thread that started it ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
