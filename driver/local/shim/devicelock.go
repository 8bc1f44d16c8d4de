package shim

import (
	"bufio"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// DeviceLock is the lock of a device. It lies on the node by which the device is opened, where it has one: no cleaner
// removes that, and only who may open the device can hold it. The lock of earlier releases, in a folder that all users
// share, is taken as well.
type DeviceLock struct {
	Name   string // of the device
	Node   string // "" = none is known
	Part   bool   // of the device of the node: others hold other parts of it
	Folder string // of the locks of earlier releases, or of what has no node; that of the machine if Shared is true
	Shared bool   // the folder is one of all users
}

// Take takes the lock, which ends once the files are closed or the process ends; together: others may take it so as
// well. The error wraps ErrHeld and names who has it, as far as that can be seen.
func (l *DeviceLock) Take(together bool) (files []*os.File, err error) {
	if l.Node != "" {
		f, refused := l.takeNode(together)
		if refused != nil {
			return nil, refused
		}
		files = append(files, f)
	}
	if l.Shared {
		err = machineFolder(l.Folder)
	} else {
		err = os.MkdirAll(l.Folder, 0o700)
	}
	if err != nil && l.Node != "" {
		return files, nil // whatever another user made of that folder, the node has the lock
	}
	if err == nil {
		var f *os.File
		if f, err = Lock(filepath.Join(l.Folder, l.Name), together); err == nil {
			return append(files, f), nil
		}
	}
	for _, f := range files {
		_ = f.Close()
	}
	if errors.Is(err, ErrHeld) {
		err = l.held(filepath.Join(l.Folder, l.Name))
	}
	return nil, err
}

// takeNode takes the lock on the node. One of a part is that of a byte of it.
func (l *DeviceLock) takeNode(together bool) (*os.File, error) {
	f, err := os.OpenFile(l.Node, os.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", l.Name, err)
	}
	how, kind := unix.LOCK_EX, int16(unix.F_WRLCK)
	if together {
		how, kind = unix.LOCK_SH, unix.F_RDLCK
	}
	if l.Part {
		err = lockByte(f, kind, byteOf(l.Name))
	} else {
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	}
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.EACCES):
		err = l.held(l.Node)
	default:
		err = fmt.Errorf("device %s: lock of %s: %w", l.Name, l.Node, err)
	}
	_ = f.Close()
	return nil, err
}

// byteOf returns which byte of a node stands for a part of its device.
func byteOf(name string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // it takes everything
	return int64(h.Sum64() >> 2)
}

// held is the error of a lock that someone has.
func (l *DeviceLock) held(path string) error {
	return fmt.Errorf("device %s is in use%s: %w", l.Name, holderOf(path), ErrHeld)
}

// holderOf names who has a lock on a file, as " by process 12 (trainyard) of ann"; "" = that cannot be seen.
func holderOf(path string) string {
	file := lockedFile(path)
	f, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		w := strings.Fields(lines.Text()) // 1: FLOCK ADVISORY WRITE 12 00:05:77 0 EOF
		if len(w) < 6 || w[1] != "FLOCK" || w[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(w[4]); err == nil && pid > 0 {
			return processText(pid)
		}
	}
	return ""
}

// processText names a process with its program and user.
func processText(pid int) string {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	text := fmt.Sprintf(" by process %d", pid)
	if name, err := os.ReadFile(filepath.Join(dir, "comm")); err == nil {
		text += fmt.Sprintf(" (%s)", strings.TrimSpace(string(name)))
	}
	info, err := os.Stat(dir)
	if err != nil {
		return text
	}
	uid := strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10)
	if u, err := user.LookupId(uid); err == nil {
		return text + " of " + u.Username
	}
	return text + " of user " + uid
}
