package api

import (
	"fmt"
	"net"
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

// checkPeer refuses a connection to a socket of a folder on which neither the folder's owner nor root listens: whoever
// could put his own socket there would be sent jobs, with what is secret in them. It names both in a strangerError.
func checkPeer(conn net.Conn, folder *os.File) error {
	var owner syscall.Stat_t
	if err := syscall.Fstat(int(folder.Fd()), &owner); err != nil {
		return fmt.Errorf("owner of the folder: %w", err)
	}
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var peer *syscall.Ucred
	failed := raw.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return fmt.Errorf("who listens: %w", err)
	case peer.Uid != 0 && peer.Uid != owner.Uid:
		return &strangerError{peer.Uid, owner.Uid}
	}
	return nil
}
