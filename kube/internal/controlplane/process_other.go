//go:build !linux

package controlplane

import "syscall"

// attributes are the defaults: the terminal's Ctrl-C ends the servers together with the test.
func attributes() *syscall.SysProcAttr { return nil }
