package shim

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/attempt/task"
)

// UserOutput says to which files of its user an attempt writes.
type UserOutput struct {
	File     string `json:"file"`               // absolute path
	Error    string `json:"error,omitempty"`    // absolute path for standard error; "" = File
	Truncate bool   `json:"truncate,omitempty"` // they are made empty first
}

// ErrOutput says that a path is no file that the output of a job may go to.
var ErrOutput = errors.New("output")

// CheckOutput returns why no output can be written to an absolute path, or nil: a folder that is not there, a file that
// is not to be written to, a link that another user made. Of a pattern the part before its first % is looked at.
func CheckOutput(path string) error {
	if before, _, is := strings.Cut(path, "%"); is {
		return checkFolder(filepath.Dir(before + "x"))
	}
	return checkWritable(path)
}

// checkWritable is CheckOutput of a path that is no pattern.
func checkWritable(path string) error {
	if err := checkFolder(filepath.Dir(path)); err != nil {
		return err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if bad := checkLinks(path, os.Getuid()); bad != nil {
			return bad
		}
		if link, gone := os.Lstat(path); gone == nil && link.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%w: %s is a link to a file that is not there, want one that is", ErrOutput, path)
		}
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", ErrOutput, err)
	case !info.Mode().IsRegular() && path != os.DevNull:
		return fmt.Errorf("%w: %s is %v, want a file", ErrOutput, path, info.Mode())
	case unix.Access(path, unix.R_OK|unix.W_OK) != nil:
		return fmt.Errorf("%w: %s may not be read and written, want a file that may", ErrOutput, path)
	}
	return checkLinks(path, os.Getuid())
}

// checkFolder returns why no file can be made in a folder, or nil.
func checkFolder(folder string) error {
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: folder %s is not there, want one that is: none is made", ErrOutput, folder)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrOutput, err)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is no folder", ErrOutput, folder)
	case folder != filepath.Dir(os.DevNull) && unix.Access(folder, unix.W_OK|unix.X_OK) != nil:
		return fmt.Errorf("%w: folder %s may not be written to, want one that may", ErrOutput, folder)
	case os.Getuid() == 0 && folder != filepath.Dir(os.DevNull) && !makesFiles(folder):
		return fmt.Errorf("%w: no file can be made in folder %s, want another", ErrOutput, folder)
	}
	return checkLinks(folder, os.Getuid())
}

// makesFiles reports whether a file can be made in a folder. The superuser is refused nothing, but there are folders
// such as /proc that take no files.
func makesFiles(folder string) bool {
	f, err := os.CreateTemp(folder, ".trainyard-*")
	if err != nil {
		return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) // there may be room by then
	}
	_ = f.Close()
	return os.Remove(f.Name()) == nil
}

// checkLinks returns an error if a part of a path is a link that is neither of user me nor of the system's.
func checkLinks(path string, me int) error {
	for part := path; part != filepath.Dir(part); part = filepath.Dir(part) {
		info, err := os.Lstat(part)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != me && s.Uid != 0 {
			return fmt.Errorf("%w: %s is a link of another user, want none on the way to the file", ErrOutput, part)
		}
		resolved, err := filepath.EvalSymlinks(filepath.Dir(part))
		to, failed := os.Readlink(part)
		if err != nil || failed != nil {
			continue
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(resolved, to)
		}
		if deeper := checkLinks(to, me); deeper != nil {
			return deeper
		}
	}
	return nil
}

// openOutput opens a file of its user for the output of a job, which appends to it.
func openOutput(path string, truncate bool) (*os.File, error) {
	if err := checkWritable(path); err != nil {
		return nil, err
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	}
	how := os.O_CREATE | os.O_RDWR | os.O_APPEND | unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(path, how, 0o666)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOutput, err)
	}
	if info, bad := f.Stat(); path != os.DevNull && (bad != nil || !info.Mode().IsRegular()) {
		_ = f.Close()
		return nil, fmt.Errorf("%w: %s is no file, want one", ErrOutput, path)
	}
	if truncate && path != os.DevNull {
		if err = f.Truncate(0); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("%w: %w", ErrOutput, err)
		}
	}
	return f, nil
}

// outputs are where an attempt writes: the files of its user, if it has some, and what is kept of them for logs and
// progress.
type outputs struct {
	kept     *os.File
	out, err *os.File // of the job
	copies   []*outputCopy
	done     chan struct{} // closed to end the copying
	copying  sync.WaitGroup
}

// open opens them all, or returns errStopped.
func (o *Order) open(dir RunDir, stop <-chan struct{}) (*outputs, error) {
	kept, err := openAppend(dir.Output())
	if err != nil {
		return nil, err
	}
	all := &outputs{kept: kept, out: kept, err: kept, done: make(chan struct{})}
	if o.Output == nil {
		return all, nil
	}
	if err = o.Output.await(stop); err == nil {
		all.out, err = all.add(o.Output.File, o.Output.Truncate)
	}
	if err == nil {
		all.err = all.out
		if o.Output.Error != "" && o.Output.Error != o.Output.File {
			all.err, err = all.add(o.Output.Error, o.Output.Truncate)
		}
	}
	if err != nil {
		all.close()
		return nil, err
	}
	all.copying.Go(all.follow)
	return all, nil
}

// How long the folder of an output may not be there yet, and how often it is looked for.
const (
	folderPatience = 10 * time.Second
	folderLook     = 20 * time.Millisecond
)

// errStopped says that an attempt is to end before its job was started.
var errStopped = errors.New("stopped before it started")

// await waits a while for folders that are not there, and returns errStopped on a stop meanwhile. One named by the
// number of its job may be made only once its submitter knows that, as by submitit.
func (to *UserOutput) await(stop <-chan struct{}) error {
	until := time.After(folderPatience)
	for _, path := range []string{to.File, to.Error} {
		for {
			if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
				break
			}
			select {
			case <-stop:
				return errStopped
			case <-until:
				return nil
			case <-time.After(folderLook):
			}
		}
	}
	return nil
}

// add opens a file of the user's, what is added to which is copied.
func (all *outputs) add(path string, truncate bool) (*os.File, error) {
	f, err := openOutput(path, truncate)
	if err != nil {
		return nil, err
	}
	c := &outputCopy{from: f, to: all.kept}
	if info, failed := f.Stat(); failed == nil {
		c.at = info.Size()
	}
	all.copies = append(all.copies, c)
	return f, nil
}

// follow copies until done is closed.
func (all *outputs) follow() {
	for pause := lookLeast; ; {
		select {
		case <-all.done:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, lookMost)
		if all.copyNow() {
			pause = lookLeast
		}
	}
}

// copyNow copies what was added since, and reports whether anything was.
func (all *outputs) copyNow() (some bool) {
	for _, c := range all.copies {
		some = c.now() || some
	}
	return some
}

// close copies what is left and closes all.
func (all *outputs) close() {
	close(all.done)
	all.copying.Wait()
	all.copyNow()
	for _, c := range all.copies {
		_ = c.from.Close()
	}
	_ = all.kept.Close()
}

// most is how many bytes of the disk the output may take that is kept for logs: where all of it is in files of the
// user's, little.
func (o *Order) most() int64 {
	if o.Output != nil {
		return task.LeastOutput
	}
	return o.MaxOutput
}

// outputCopy copies what is added to a file.
type outputCopy struct {
	mu       sync.Mutex
	from, to *os.File
	at       int64
	failed   bool // which was reported
}

// now copies what was added, and reports whether anything was. A file that became shorter is read from its start.
func (c *outputCopy) now() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := c.from.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if info.Size() < c.at {
		c.at = 0
	}
	more := info.Size() - c.at
	if more == 0 {
		return false
	}
	if _, err = io.Copy(c.to, io.NewSectionReader(c.from, c.at, more)); err != nil && !c.failed {
		c.failed = true
		slog.Warn("the output is not kept for logs; it is in the job's own file", "error", err)
	}
	c.at += more
	return true
}
