package shim

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve has room for so many bytes kept for the file on its disk, without a change of its length.
func reserve(f *os.File, room int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, room)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil // not on every file system
	}
	return err
}
