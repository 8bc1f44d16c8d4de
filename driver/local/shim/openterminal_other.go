//go:build !linux

package shim

import (
	"errors"
	"os"
	"syscall"
)

// openTerminal fails: no job runs here.
func openTerminal() (ours, theirs *os.File, err error) { return nil, nil, errors.ErrUnsupported }

// sizeTerminal does nothing: there are no terminals of jobs.
func sizeTerminal(*os.File, uint16, uint16) error { return nil }

// controlling does nothing: no job runs here.
func controlling(*syscall.SysProcAttr) {}
