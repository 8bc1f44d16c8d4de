package ports

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// lockBlock takes the lock of the block whose first port is given; errTaken if another process has it.
func lockBlock(first int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	name := "trainyard-ports-" + strconv.Itoa(first)
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name}); err != nil {
		_ = unix.Close(fd)
		if errors.Is(err, unix.EADDRINUSE) {
			err = errTaken
		}
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
