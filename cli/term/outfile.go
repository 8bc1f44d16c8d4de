package term

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// OutFile is a file that appears under its name only when it is whole. What is no regular file, such as a device or a
// pipe, is written to directly.
type OutFile struct {
	*bufio.Writer
	path string // where it will be
	file *os.File
	temp string // its name until then; "" = written to directly, or done
}

// CreateOut creates the file at path. A link is followed. Standard output and standard error are written to as they
// are: a file that they lead to has what others wrote there.
func CreateOut(path string) (*OutFile, error) {
	if f := map[string]*os.File{"/dev/stdout": os.Stdout, "/dev/stderr": os.Stderr}[path]; f != nil {
		return openStream(f)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s: is a folder, want the name of a file", path)
	case err == nil && !info.Mode().IsRegular():
		return openDevice(path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	mode := fs.FileMode(0o644)
	if info != nil {
		mode = info.Mode().Perm()
	}
	return createTemp(path, mode)
}

// openStream has another descriptor of an open file, which is closed alone.
func openStream(of *os.File) (*OutFile, error) {
	fd, err := syscall.Dup(int(of.Fd()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of.Name(), err)
	}
	f := os.NewFile(uintptr(fd), of.Name())
	return &OutFile{Writer: bufio.NewWriterSize(f, 64<<10), path: of.Name(), file: f}, nil
}

// openDevice opens what is there to be written to.
func openDevice(path string) (*OutFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	return &OutFile{Writer: bufio.NewWriterSize(f, 64<<10), path: path, file: f}, nil
}

// createTemp creates a file next to path that no other run uses.
func createTemp(path string, mode fs.FileMode) (*OutFile, error) {
	for try := 0; ; try++ {
		temp := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d-%d.tmp", filepath.Base(path), os.Getpid(), try))
		f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) && try < 100 {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w; want a name in a folder that exists and may be written to", path,
				pathCause(err))
		}
		return &OutFile{Writer: bufio.NewWriterSize(f, 64<<10), path: path, file: f, temp: temp}, nil
	}
}

// pathCause returns an error of package os without the path.
func pathCause(err error) error {
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// Commit gives the file its name.
func (f *OutFile) Commit() error {
	err := f.Flush()
	if closed := f.file.Close(); err == nil {
		err = closed
	}
	if err == nil && f.temp != "" {
		err = os.Rename(f.temp, f.path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, pathCause(err))
	}
	f.temp = ""
	return nil
}

// Discard removes what there is of a file that was not committed.
func (f *OutFile) Discard() {
	if f.temp != "" {
		_ = f.file.Close()
		_ = os.Remove(f.temp)
		f.temp = ""
	}
}

// WithName puts name before the extension: log.jsonl becomes log.fifo.jsonl.
func WithName(path, name string) string {
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + "." + name + ext
}
