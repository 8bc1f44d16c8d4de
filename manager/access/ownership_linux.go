package access

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// CheckPath refuses a state folder, or a folder on the way to it, that another user than this one and root owns or can
// write: whoever can put a folder in its place has his jobs run as whoever serves it. A folder on the way may be open
// to all if root owns it and it is sticky, as /tmp. What is not there yet is made by this process. The error wraps
// ErrOthers and names the folder.
func CheckPath(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	at, rest := "/", strings.Split(dir, "/")
	if err := checkParent(at); err != nil {
		return err
	}
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return fmt.Errorf("%s: %w", dir, syscall.ELOOP)
			}
			to, err := linked(next, info)
			if err != nil {
				return err
			}
			if filepath.IsAbs(to) {
				at = "/"
			}
			rest = append(strings.Split(to, "/"), rest...)
			continue
		}
		at = next
		if len(rest) == 0 {
			break
		}
		if err := checkParent(at); err != nil {
			return err
		}
	}
	return CheckFolder(at)
}

// maxLinks is how many links a path may lead through.
const maxLinks = 40

// linked returns where a link leads, if it is ours or root's.
func linked(path string, info fs.FileInfo) (string, error) {
	if err := owned(path, info); err != nil {
		return "", err
	}
	return os.Readlink(path)
}

// ErrOthers says that another user could have what he likes run, or admit whom he likes.
var ErrOthers = errors.New("this user and root alone must own it and be able to write it")

// CheckFolder refuses a state folder if another user than this one and root owns it, the database, the tokens or
// anything else in it, or can write one of these. A folder that is not there is fine. The error wraps ErrOthers.
func CheckFolder(dir string) error {
	if err := closed(dir); err != nil {
		return ignoreMissing(err)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range list {
		if f.Type()&fs.ModeSocket != 0 { // open to those whom the manager lets in
			continue
		}
		if err := ignoreMissing(closed(filepath.Join(dir, f.Name()))); err != nil {
			return err
		}
	}
	return nil
}

// CheckFile refuses a file whose content is to be trusted if another user than this one and root owns it or can write
// it. A link counts as what it leads to. The error wraps ErrOthers.
func CheckFile(path string) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return closed(path)
}

// checkParent refuses a folder in which another user can put something in the place of what is ours.
func checkParent(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode()&os.ModeSticky != 0 && info.Sys().(*syscall.Stat_t).Uid == 0 {
		return nil
	}
	return closed(path)
}

// closed refuses what another user than this one and root owns or can write.
func closed(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err = owned(path, info); err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return err
	}
	acl, err := aclOf(path)
	if err != nil {
		return err
	}
	gid := info.Sys().(*syscall.Stat_t).Gid
	return writable(path, info.Mode().Perm(), gid, acl)
}

// owned refuses what another user than this one and root owns.
func owned(path string, info fs.FileInfo) error {
	uid := info.Sys().(*syscall.Stat_t).Uid
	if ours(uid) {
		return nil
	}
	return fmt.Errorf("%s belongs to %s: %w", path, UserName(uid), ErrOthers)
}

func ours(uid uint32) bool { return uid == 0 || int64(uid) == int64(os.Geteuid()) }

// writable refuses what another user than this one and root can write, by its mode or its list of access rights, where
// it has one: then the mode shows no rights of its group, but what the list grants at most.
func writable(path string, mode fs.FileMode, gid uint32, acl []aclEntry) error {
	if mode&0o002 != 0 {
		return fmt.Errorf("%s has mode %#o, all may write it: %w; try chmod go-w", path, mode, ErrOthers)
	}
	if mode&0o020 == 0 {
		return nil
	}
	if acl == nil {
		acl = []aclEntry{{tag: aclGroupOwner, perm: aclWrite}}
	}
	const listed = "%s may be written by %s, as its access list says: %w; try setfacl -b"
	for _, e := range acl {
		switch {
		case e.perm&aclWrite == 0:
		case e.tag == aclUser && !ours(e.id):
			return fmt.Errorf(listed, path, UserName(e.id), ErrOthers)
		case e.tag == aclGroup && !private(e.id):
			return fmt.Errorf(listed, path, fmt.Sprintf("group %d", e.id), ErrOthers)
		case e.tag == aclGroupOwner && !private(gid):
			return fmt.Errorf("%s has mode %#o, its group %d may write it: %w; try chmod g-w", path, mode, gid,
				ErrOthers)
		}
	}
	return nil
}

// aclEntry is a line of a POSIX access list.
type aclEntry struct {
	tag, perm uint16
	id        uint32
}

// Tags and rights of access lists, and the version of their attribute, as the kernel has them (posix_acl_xattr.h).
const (
	aclUser       = 0x02
	aclGroupOwner = 0x04
	aclGroup      = 0x08
	aclWrite      = 0x02
	aclVersion    = 2
)

// maxACL is how long an attribute may be in bytes (XATTR_SIZE_MAX of the kernel).
const maxACL = 64 << 10

// aclOf returns the access list of a path, nil if it has none.
func aclOf(path string) ([]aclEntry, error) {
	const attribute = "system.posix_acl_access"
	b := make([]byte, maxACL)
	n, err := unix.Lgetxattr(path, attribute, b)
	switch {
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSYS):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: its access list: %w", path, err)
	}
	return parseACL(path, b[:n])
}

// parseACL reads an access list as the kernel has it.
func parseACL(path string, b []byte) ([]aclEntry, error) {
	const head, size = 4, 8
	if len(b) < head || (len(b)-head)%size != 0 || binary.LittleEndian.Uint32(b) != aclVersion {
		return nil, fmt.Errorf("%s: an access list of an unknown kind: %w", path, ErrOthers)
	}
	list := []aclEntry{}
	for b = b[head:]; len(b) > 0; b = b[size:] {
		list = append(list, aclEntry{binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:]),
			binary.LittleEndian.Uint32(b[4:])})
	}
	return list, nil
}

// private reports whether no one but this user and root is known to be of a group, as many systems make one for each
// user. One that the files of this machine do not list may have any members.
func private(gid uint32) bool {
	groups, err := os.ReadFile("/etc/group")
	if err != nil {
		return false
	}
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return false
	}
	return soleMember(string(groups), string(users), gid, ours)
}

// soleMember reports whether all members of a group, by the texts of /etc/group and /etc/passwd, are ours, and that it
// stands there.
func soleMember(groups, users string, gid uint32, ours func(uid uint32) bool) bool {
	id := fmt.Sprint(gid)
	uids := make(map[string]string) // by name
	for line := range strings.Lines(users) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 {
			continue
		}
		uids[f[0]] = f[2]
		if f[3] == id && !isOurs(f[2], ours) {
			return false
		}
	}
	listed := false
	for line := range strings.Lines(groups) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 || f[2] != id {
			continue
		}
		listed = true
		for member := range strings.SplitSeq(f[3], ",") {
			if member != "" && !isOurs(uids[member], ours) {
				return false
			}
		}
	}
	return listed
}

// isOurs reports whether a number of a user, as it is written, is one of ours; "" is none.
func isOurs(uid string, ours func(uint32) bool) bool {
	var n uint32
	_, err := fmt.Sscanf(uid, "%d", &n)
	return err == nil && ours(n)
}

// ignoreMissing returns err unless it says that something is not there.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
