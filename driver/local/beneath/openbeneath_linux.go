package beneath

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// openBeneath opens what is at a path below a folder, with no link followed on the way.
func openBeneath(folder, path string, handle bool) (int, error) {
	root, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	how := &unix.OpenHow{Flags: uint64(flags(handle)), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	for tries := 0; ; tries++ {
		fd, err := unix.Openat2(root, path, how)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN) && tries < 100: // something was moved meanwhile
			continue
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // before Linux 5.6, or a filter of calls
			return stepBeneath(root, path, handle)
		case err != nil:
			return -1, err
		}
		return unlessLink(fd)
	}
}

// unlessLink returns fd, unless it is the handle of a link.
func unlessLink(fd int) (int, error) {
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err == nil && info.Mode&unix.S_IFMT != unix.S_IFLNK {
		return fd, nil
	}
	_ = unix.Close(fd)
	return -1, unix.ELOOP
}

// flags are those to open a file for reading, which waits for no one, or as a mere handle.
func flags(handle bool) int {
	if handle {
		return unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC
	}
	return unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_NOFOLLOW | unix.O_CLOEXEC
}

// stepBeneath is openBeneath one name after the other.
func stepBeneath(root int, path string, handle bool) (int, error) {
	at, names := root, strings.Split(path, "/")
	for _, name := range names[:len(names)-1] {
		next, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if at != root {
			_ = unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		at = next
	}
	fd, err := unix.Openat(at, names[len(names)-1], flags(handle), 0)
	if at != root {
		_ = unix.Close(at)
	}
	if err != nil {
		return -1, err
	}
	return unlessLink(fd)
}
