package access

import (
	"math"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// peerUID returns the user of the process at the other end of a unix socket, as the kernel says.
func peerUID(fd int) (uint32, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

// fileLimit is how many files this process may have open.
func fileLimit() int {
	const usual = 1024
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return usual
	}
	return int(min(l.Cur, math.MaxInt32))
}

// pending reports whether something has reached a connection that was not read yet.
func pending(c net.Conn) (there bool) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		there = err == nil && n > 0
	})
	return there
}
