package realnode

import "syscall"

// attributes give a node its namespaces, and keep it out of reach of the terminal's Ctrl-C.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
}
