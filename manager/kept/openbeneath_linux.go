package kept

import (
	"golang.org/x/sys/unix"
)

// openBeneath opens a file below a folder for reading. No link leads out of it.
func openBeneath(folder int, path string) (int, error) {
	return unix.Openat2(folder, path, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
}
