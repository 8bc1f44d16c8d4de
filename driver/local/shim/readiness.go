package shim

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/attempt/progress"
)

// kernelTick is how far behind the clock a file may be dated.
const kernelTick = 10 * time.Millisecond

// ReadySince reports whether a job wrote its ready file, of that path in its run directory unless it is absolute, at a
// time or later. It did not if the path is "".
func (r RunDir) ReadySince(path string, at time.Time) bool {
	if path == "" {
		return false
	}
	look := r.Stat
	if filepath.IsAbs(path) {
		look = os.Stat
	}
	info, err := look(path)
	return err == nil && info.ModTime().After(at.Add(-kernelTick))
}

// readiness finds out whether a job that was asked to end says that all is saved: by its ready file, or by a word in
// its output or its file of progress. What it wrote before does not count.
type readiness struct {
	shim   *shim
	asked  time.Time
	reader *progress.Reader
	logs   []logTail
}

// logTail is a file that a job appends to.
type logTail struct {
	name   string
	source progress.Source
	offset int64
}

// mostUnread is how much of a log is read at a time: the last of it.
const mostUnread = 1 << 20

func newReadiness(s *shim, asked time.Time) *readiness {
	r := &readiness{shim: s, asked: asked, reader: progress.NewReader(progress.Own),
		logs: []logTail{{name: "output.log", source: progress.Output}, {name: "progress.jsonl", source: progress.File}}}
	for i := range r.logs {
		if info, err := os.Lstat(s.record.file(r.logs[i].name)); err == nil {
			r.logs[i].offset = info.Size()
		}
	}
	return r
}

// now reports whether the job has said so by now.
func (r *readiness) now() bool {
	if r.shim.saidReady() || r.shim.dir.ReadySince(r.shim.order.Save.Ready, r.asked) {
		return true
	}
	for i := range r.logs {
		if r.said(&r.logs[i]) {
			return true
		}
	}
	return false
}

// said reads what was added to a log, and reports whether the word is in it.
func (r *readiness) said(l *logTail) (ready bool) {
	f, err := openLog(r.shim.record.file(l.name))
	if err != nil {
		return false // not there yet, or none of a job in its senses
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || size <= l.offset {
		return false
	}
	from := max(l.offset, size-mostUnread)
	added := make([]byte, size-from)
	n, _ := f.ReadAt(added, from) // the rest later
	l.offset = from + int64(n)
	for m := range r.reader.Read(l.source, added[:n]) {
		ready = ready || m.Has&progress.Ready != 0
	}
	return ready
}

// openLog opens a file of the run directory for reading. The job may have put anything in its place: no link is
// followed, and no pipe waited for.
func openLog(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if info, bad := f.Stat(); bad != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, fmt.Errorf("%s is no file", path)
	}
	return f, nil
}
