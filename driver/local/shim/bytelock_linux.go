package shim

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockByte takes a lock on one byte of a file, which holds for as long as the file is open.
func lockByte(f *os.File, kind int16, at int64) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: at, Len: 1})
}

// lockedFile names a file as /proc/locks does; "" = it is not there.
func lockedFile(path string) string {
	var at unix.Stat_t
	if unix.Stat(path, &at) != nil {
		return ""
	}
	return fmt.Sprintf("%02x:%02x:%d", unix.Major(at.Dev), unix.Minor(at.Dev), at.Ino)
}
