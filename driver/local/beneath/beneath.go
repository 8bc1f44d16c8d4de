// Package beneath reads what lies in folders that others write to: jobs may put anything there. No link is followed
// below the folder, nothing but regular files is read, and of these no more than the caller wants.
package beneath

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrRefused is wrapped by the error about what is there but is not read: a link, a folder, a pipe, a device, a file
// that is too long or may not be read. It will not get better by itself.
var ErrRefused = errors.New("not what may stand there")

// ErrNotRegular says that something is there and is no regular file. It comes with ErrRefused.
var ErrNotRegular = errors.New("no regular file")

// ErrTooLong says that a file is longer than the caller reads. It comes with ErrRefused.
var ErrTooLong = errors.New("too long")

// Open opens the regular file at path, which is relative to folder, for reading. Links on the way to folder are
// followed, none below it is. Errors wrap fs.ErrNotExist or ErrRefused, or are those of the machine, which may pass.
func Open(folder, path string) (*os.File, error) {
	f, err := open(folder, path, false)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, refusal(filepath.Join(folder, path), errors.Join(err, ErrNotRegular))
	}
	return f, nil
}

// Read returns the regular file at path below folder, if it has at most so many bytes. Errors are those of Open.
func Read(folder, path string, most int64) ([]byte, error) {
	f, err := Open(folder, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		return nil, refusal(f.Name(), fmt.Errorf("more than %d bytes: %w", most, ErrTooLong))
	}
	return b, err
}

// Stat describes what is at path below folder, whatever it is, but for a link: that is refused. Errors are those of
// Open.
func Stat(folder, path string) (fs.FileInfo, error) {
	f, err := Handle(folder, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Stat()
}

// Handle opens what is at path below folder, whatever it is, but for a link, so that it can be named by its descriptor
// and not be read. Errors are those of Open.
func Handle(folder, path string) (*os.File, error) { return open(folder, path, true) }

// open opens what is at path below folder, for reading or as a mere handle.
func open(folder, path string, handle bool) (*os.File, error) {
	name := filepath.Join(folder, path)
	if !filepath.IsLocal(path) {
		return nil, refusal(name, fmt.Errorf("%q leads out of the folder", path))
	}
	fd, err := openBeneath(folder, filepath.Clean(path), handle)
	if err != nil {
		if isRefusal(err) {
			return nil, refusal(name, err)
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// isRefusal reports whether the kernel would not open what is there for what it is.
func isRefusal(err error) bool {
	for _, e := range []syscall.Errno{syscall.ELOOP, syscall.EXDEV, syscall.ENOTDIR, syscall.EISDIR, syscall.ENXIO,
		syscall.EACCES, syscall.EPERM, syscall.ENAMETOOLONG} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func refusal(name string, err error) error { return fmt.Errorf("%s: %w: %w", name, ErrRefused, err) }
