package main

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the exclusive lock on the file and returns the file, which holds it until it is closed. It does not wait:
// if another process has it, the error is errHeld.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = errHeld
	}
	f.Close()
	return nil, err
}
