//go:build linux

package beneath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Ensure that nothing but a regular file of a few bytes is read, whatever else lies at its name or on the way there, in
// one step and, for older kernels, name by name.
func TestOnlyFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(at("job/run"), 0o700))
	must(os.WriteFile(at("job/run/file"), []byte("12345678"), 0o600))
	must(os.WriteFile(at("job/run/long"), []byte("123456789"), 0o600))
	must(os.Symlink("/dev/zero", at("job/run/zero")))
	must(os.Symlink("file", at("job/run/near")))
	must(os.Symlink("run", at("job/link")))
	must(os.Symlink("gone", at("job/run/dangling")))
	must(unix.Mkfifo(at("job/run/pipe"), 0o600))
	must(os.Mkdir(at("job/run/folder"), 0o700))
	link := filepath.Join(t.TempDir(), "state")
	must(os.Symlink(dir, link))
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	must(err)
	defer unix.Close(root)
	for path, want := range map[string]error{"job/run/file": nil, "job/run/long": ErrTooLong,
		"job/run/zero": unix.ELOOP,
		"job/run/near": unix.ELOOP, "job/link/file": ErrRefused, "job/run/dangling": unix.ELOOP,
		"job/run/pipe": ErrNotRegular, "job/run/folder": ErrNotRegular, "job/run/none": fs.ErrNotExist,
		"job/none/file": fs.ErrNotExist, "job/run/file/x": unix.ENOTDIR, "../x": ErrRefused, "/etc/passwd": ErrRefused,
		"job/run/" + strings.Repeat("x", 300): unix.ENAMETOOLONG} {
		for _, folder := range []string{dir, link} {
			b, err := Read(folder, path, 8)
			if want == nil && (err != nil || string(b) != "12345678") || want != nil && !errors.Is(err, want) ||
				want != nil && !errors.Is(want, fs.ErrNotExist) && !errors.Is(err, ErrRefused) {
				t.Errorf("%s: %q, %v, want %v", path, b, err, want)
			}
		}
		if !filepath.IsLocal(path) {
			continue
		}
		fd, err := stepBeneath(root, path, false)
		if err == nil {
			err = unix.Close(fd)
		}
		opened := want == nil || errors.Is(want, ErrTooLong) || errors.Is(want, ErrNotRegular)
		if opened != (err == nil) {
			t.Errorf("%s: %v step by step, want %v", path, err, want)
		}
	}
	for path, want := range map[string]bool{"job/run/pipe": true, "job/run": true, "job/run/near": false} {
		_, err := Stat(dir, path)
		fd, step := stepBeneath(root, path, true)
		if step == nil {
			step = unix.Close(fd)
		}
		if want != (err == nil) || want != (step == nil) {
			t.Errorf("stat of %s: %v, step by step %v, want it described %v", path, err, step, want)
		}
	}
}
