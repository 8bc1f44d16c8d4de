package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// preallocate gives a part of a file blocks on its disk; longer: the file becomes as long.
func preallocate(f *os.File, from, size int64, longer bool) error {
	mode := uint32(unix.FALLOC_FL_KEEP_SIZE)
	if longer {
		mode = 0
	}
	return unix.Fallocate(int(f.Fd()), mode, from, size)
}
