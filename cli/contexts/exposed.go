//go:build unix

package contexts

import (
	"io/fs"
	"os"
	"syscall"
)

// exposed reports whether someone else than the user and root may write the file or folder.
func exposed(info fs.FileInfo) bool {
	owner := info.Sys().(*syscall.Stat_t).Uid
	return info.Mode().Perm()&0o022 != 0 || owner != 0 && int(owner) != os.Getuid()
}
