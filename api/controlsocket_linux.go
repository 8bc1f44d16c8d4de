package api

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Socket returns the address of the control socket in dir, which is short wherever that is, and valid while folder is
// open.
func Socket(dir string) (folder *os.File, address string, err error) {
	fd, err := syscall.Open(dir, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0) // who may pass need not read it
	if err != nil {
		return nil, "", &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return os.NewFile(uintptr(fd), dir), filepath.Join("/proc/self/fd", strconv.Itoa(fd), "control"), nil
}

const oPath = 0x200000 // O_PATH of Linux
