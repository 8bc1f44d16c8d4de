package access

import "golang.org/x/sys/unix"

// peerUID returns the user of the process at the other end of a unix socket, as the kernel says.
func peerUID(fd int) (uint32, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
