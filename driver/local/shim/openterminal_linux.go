package shim

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openTerminal makes a terminal of 80x24: the end of who reads and types, and the end of the job.
func openTerminal() (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	n := 0
	err = onFile(ours, func(fd int) (failed error) {
		if n, failed = unix.IoctlGetInt(fd, unix.TIOCGPTN); failed == nil {
			failed = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
		}
		return failed
	})
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err == nil {
		err = sizeTerminal(ours, 24, 80)
	}
	if err != nil {
		_ = ours.Close()
		return nil, nil, fmt.Errorf("terminal: %w", err)
	}
	return ours, theirs, nil
}

// onFile does something with a file that stays one whose reads end when it is closed.
func onFile(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = do(int(fd)) })
	return errors.Join(err, failed)
}

// sizeTerminal says how large a terminal is: its programs get SIGWINCH.
func sizeTerminal(f *os.File, rows, columns uint16) error {
	return onFile(f, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	})
}

// controlling has a command, started as the first of a session, be controlled by its standard input.
func controlling(attr *syscall.SysProcAttr) { attr.Setctty = true }
