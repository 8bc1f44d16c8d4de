package shim

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// Data returns where the data of a file goes on, at a place or behind it, and where the next hole is behind that, both
// in bytes. With no data behind the place both are math.MaxInt64. It moves the file's own place.
func Data(f *os.File, at int64) (from, to int64, err error) {
	fd := int(f.Fd())
	from, err = unix.Seek(fd, at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return math.MaxInt64, math.MaxInt64, nil
	case errors.Is(err, unix.EINVAL): // a file system that does not know
		return at, math.MaxInt64, nil
	case err != nil:
		return 0, 0, err
	}
	to, err = unix.Seek(fd, from, unix.SEEK_HOLE)
	return from, to, err
}

// punch gives the blocks of a part of a file back. Its length stays, and zeros are read there.
func punch(f *os.File, from, to int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, to-from)
}

// takes returns the length of a file, how many bytes of its disk it takes, and how many of them are free.
func takes(f *os.File) (size, taken, free int64, err error) {
	var st unix.Stat_t
	var disk unix.Statfs_t
	if bad := errors.Join(unix.Fstat(int(f.Fd()), &st), unix.Fstatfs(int(f.Fd()), &disk)); bad != nil {
		return 0, 0, 0, bad
	}
	return st.Size, st.Blocks * 512, int64(min(disk.Bavail, 1<<40)) * disk.Bsize, nil
}
