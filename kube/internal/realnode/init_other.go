//go:build !linux

package realnode

import "syscall"

func attributes() *syscall.SysProcAttr { return nil } // Needs skips
