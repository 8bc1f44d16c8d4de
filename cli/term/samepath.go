package term

import (
	"os"
	"path/filepath"
)

// PathUse is a file that a command line reads or writes.
type PathUse struct {
	What string // what is read, or the flag that says to write
	Path string
}

// SamePath reports whether two paths name one file, be it there already or not.
func SamePath(a, b string) bool {
	if resolved(a) == resolved(b) {
		return true
	}
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && x.Mode().IsRegular() && os.SameFile(x, y) // a terminal is stdin and stdout
}

// resolved returns a path without links, as far as they can be found for a file that may not be there yet.
func resolved(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}
