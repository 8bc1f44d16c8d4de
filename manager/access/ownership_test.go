package access

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const stranger = 12345

// folder makes a state folder with a database, whose parent is of the test alone.
func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "parent", "state")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"events.db", TokensName} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// grant gives a path an access list by which a user or group may write, as far as the mask lets it.
func grant(path string, tag uint16, id uint32, mask uint16) error {
	b := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, e := range []aclEntry{{0x01, 7, ^uint32(0)}, {aclUser, 0, stranger + 1}, {aclGroupOwner, 0, ^uint32(0)},
		{tag, 7, id}, {0x10, mask, ^uint32(0)}, {0x20, 0, ^uint32(0)}} {
		b = binary.LittleEndian.AppendUint16(b, e.tag)
		b = binary.LittleEndian.AppendUint16(b, e.perm)
		b = binary.LittleEndian.AppendUint32(b, e.id)
	}
	if tag == aclUser { // in the order of tags
		copy(b[4+2*8:4+3*8], b[4+3*8:4+4*8])
		copy(b[4+3*8:4+4*8], append(binary.LittleEndian.AppendUint16(nil, aclGroupOwner), 0, 0, 255, 255, 255, 255))
		binary.LittleEndian.PutUint32(b[4+8+4:], stranger-1)
	}
	return unix.Setxattr(path, "system.posix_acl_access", b, 0)
}

// Ensure that a folder is refused that others own or can write, itself, what is in it or what leads to it, by mode,
// owner or access list, and that the error names what is wrong; and that what is closed passes, wherever it lies.
func TestCheckPath(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to give folders away")
	}
	for name, c := range map[string]struct {
		change func(dir string) error
		names  string // what the error names, in the parent; "" = it passes
	}{
		"closed":     {func(string) error { return nil }, ""},
		"not there":  {os.RemoveAll, ""},
		"given away": {func(dir string) error { return os.Chown(dir, stranger, 0) }, "state belongs to uid:12345"},
		"all write":  {func(dir string) error { return os.Chmod(dir, 0o707) }, "state has mode"},
		"sticky":     {func(dir string) error { return os.Chmod(dir, 0o777|os.ModeSticky) }, "state has mode"},
		"group writes": {func(dir string) error {
			return errors.Join(os.Chown(dir, -1, stranger), os.Chmod(dir, 0o770))
		}, "its group 12345 may write"},
		"group reads": {func(dir string) error {
			return errors.Join(os.Chown(dir, -1, stranger), os.Chmod(dir, 0o750))
		}, ""},
		"parent given away": {func(dir string) error {
			return os.Chown(filepath.Dir(dir), stranger, 0)
		}, "parent belongs"},
		"parent open":    {func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, "parent has mode"},
		"parent as /tmp": {func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777|os.ModeSticky) }, ""},
		"database given away": {func(dir string) error {
			return os.Chown(filepath.Join(dir, "events.db"), stranger, 0)
		}, "events.db belongs"},
		"tokens open": {func(dir string) error {
			return os.Chmod(filepath.Join(dir, TokensName), 0o606)
		}, TokensName + " has mode"},
		"list for a user": {func(dir string) error { return grant(dir, aclUser, stranger, 7) }, "written by uid:12345"},
		"list for a group": {func(dir string) error {
			return grant(filepath.Dir(dir), aclGroup, stranger, 7)
		}, "written by group 12345"},
		"list of a file": {func(dir string) error {
			return grant(filepath.Join(dir, "events.db"), aclUser, stranger, 7)
		}, "events.db may be written by uid:12345"},
		"list behind its mask": {func(dir string) error { return grant(dir, aclUser, stranger, 5) }, ""},
		"list for root":        {func(dir string) error { return grant(dir, aclUser, 0, 7) }, ""},
		"link": {func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".real"), os.Symlink(dir+".real", dir))
		}, ""},
		"link of another": {func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".real"), os.Symlink(dir+".real", dir), os.Lchown(dir, stranger, 0))
		}, "state belongs"},
		"link through what is open": {func(dir string) error {
			open := filepath.Join(filepath.Dir(dir), "open")
			return errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777), os.Rename(dir, open+"/real"),
				os.Symlink("open/../open/real", dir))
		}, "open has mode"},
		"links in a ring": {func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.Symlink(dir, dir))
		}, "too many levels"},
	} {
		dir := folder(t)
		if err := c.change(dir); errors.Is(err, unix.ENOTSUP) {
			t.Logf("%s: no access lists here", name)
			continue
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err := CheckPath(dir)
		if c.names == "" && err != nil || c.names != "" && (err == nil || !strings.Contains(err.Error(), c.names)) {
			t.Errorf("%s: %v, want %q", name, err, c.names)
		}
		if err != nil && name != "links in a ring" && !errors.Is(err, ErrOthers) {
			t.Errorf("%s: %v is no ErrOthers", name, err)
		}
	}
}

// Ensure that a group counts as its user's own only if the files of the machine say so of each member.
func TestSoleMember(t *testing.T) {
	const users = "root:x:0:0::/root:/bin/sh\nann:x:7:7::/:/bin/sh\nbob:x:8:9::/:/bin/sh\n"
	mine := func(uid uint32) bool { return uid == 0 || uid == 7 }
	for _, c := range []struct {
		groups string
		gid    uint32
		want   bool
	}{
		{"ann:x:7:", 7, true},
		{"ann:x:7:ann,root", 7, true},
		{"ann:x:7:ann,bob", 7, false},
		{"ann:x:7:not-listed", 7, false},
		{"lab:x:9:", 9, false}, // bob's own
		{"ann:x:7:", 10, false},
		{"", 7, false},
		{"ann:x:7", 7, false},
	} {
		if got := soleMember(c.groups, users, c.gid, mine); got != c.want {
			t.Errorf("%q, %d: %t", c.groups, c.gid, got)
		}
	}
	if b, err := parseACL("x", []byte{3, 0, 0, 0}); !errors.Is(err, ErrOthers) {
		t.Error(fmt.Sprint(b), err)
	}
}
