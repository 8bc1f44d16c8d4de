package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/sched"
)

// Limits of reading what jobs write.
const (
	maxPiece = 64 << 10               // bytes that are read and sent at once: a line may have any length, and is never held
	maxTail  = 8 << 20                // bytes that tail looks back
	pollLog  = 200 * time.Millisecond // between looks at what an attempt writes
)

// place is how far an output was sent: the next byte of an attempt.
type place struct {
	attempt int32
	offset  int64
}

// String is the id of an event of a stream.
func (p place) String() string { return fmt.Sprintf("%d:%d", p.attempt, p.offset) }

// parsePlace reads the id of an event.
func parsePlace(id string) (p place, err error) {
	if n, err := fmt.Sscanf(id, "%d:%d", &p.attempt, &p.offset); n != 2 || err != nil || p.attempt < 1 || p.offset < 0 || p.String() != id {
		return place{}, fmt.Errorf("%w: place %q, want ATTEMPT:OFFSET", api.ErrMalformed, id)
	}
	return p, nil
}

// reading is how somebody wants to read the output of a job.
type reading struct {
	from    place     // attempt 0 = the latest
	follow  bool      // go on with what is written, and with the next attempts, until the job is done
	tail    int       // lines from the end; -1 = all
	since   time.Time // leave out attempts that wrote nothing since; zero = none
	pieces  func(p place, text []byte) error
	ended   func(p place, row *manager.Row) error // all there will be was told, or all there is
	dir     string
	job     sched.JobID
	current func() (row manager.Row, changed <-chan struct{})
}

// run tells the output of a job, piece by piece. It waits for the reader of the pieces and for nobody else: a job
// writes into its file, whoever reads.
func (r *reading) run(ctx context.Context) error {
	row, _ := r.current()
	at, err := r.begin(row.Attempts)
	if err != nil {
		return err
	}
	var file *os.File
	defer func() { _ = file.Close() }() // nil = EINVAL
	buf := make([]byte, maxPiece)
	for {
		row, changed := r.current()
		over := row.State == sched.Done || row.Attempts > at.attempt || row.Attempts == at.attempt && row.Attempt == sched.Ended
		if file == nil {
			if file, err = openOutput(r.dir, r.job, at.attempt); err != nil {
				return err
			}
			if file != nil && r.tail >= 0 {
				at.offset, r.tail = max(at.offset, tailOffset(file, r.tail)), -1
			}
		}
		n, err := r.piece(file, buf, &at, over)
		switch {
		case err != nil:
			return err
		case n > 0:
			continue
		case r.follow && row.Attempts > at.attempt:
			_ = file.Close()
			file, at = nil, place{at.attempt + 1, 0}
			continue
		case !r.follow || row.State == sched.Done:
			return r.ended(at, &row)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-time.After(pollLog):
		}
	}
}

// begin returns where to begin. There may be no attempt yet.
func (r *reading) begin(attempts int32) (place, error) {
	at := r.from
	switch {
	case at.attempt > max(attempts, 1):
		return at, fmt.Errorf("%w: attempt %d, there were %d", api.ErrRefused, at.attempt, attempts)
	case at.attempt == 0 && r.since.IsZero():
		at.attempt = max(attempts, 1)
	case at.attempt == 0:
		at.attempt = 1
	}
	for ; at.attempt < attempts && !r.since.IsZero(); at = (place{at.attempt + 1, 0}) {
		info, err := os.Lstat(outputPath(r.dir, r.job, at.attempt))
		if err == nil && !info.ModTime().Before(r.since) {
			break
		}
	}
	return at, nil
}

// piece tells the next piece of an output and returns how many bytes it has. over: nothing more will be written.
func (r *reading) piece(file *os.File, buf []byte, at *place, over bool) (int, error) {
	if file == nil {
		return 0, nil
	}
	n, err := file.ReadAt(buf, at.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if n == 0 {
		if info, err := file.Stat(); err == nil && info.Size() < at.offset {
			at.offset = 0 // the job made its output empty and began anew
		}
		return 0, nil
	}
	text := buf[:n]
	if !over || n == len(buf) {
		text = wholeRunes(text)
	}
	if len(text) == 0 {
		return 0, nil
	}
	at.offset += int64(len(text))
	return len(text), r.pieces(*at, text)
}

// wholeRunes returns b without the beginning of a rune at its end.
func wholeRunes(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// outputPath is where an attempt writes.
func outputPath(dir string, job sched.JobID, attempt int32) string {
	return shim.State(dir).RunDir(int32(job), attempt).Output()
}

// openOutput opens what an attempt wrote; nil if there is nothing. Jobs can write where it lies, so no link of theirs
// leads elsewhere, and nothing but a file is read.
func openOutput(dir string, job sched.JobID, attempt int32) (*os.File, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	path, err := filepath.Rel(dir, outputPath(dir, job, attempt))
	if err != nil {
		return nil, err
	}
	fd, err := unix.Openat2(int(folder.Fd()), path, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nothing was written, which is no error
	}
	if err != nil {
		return nil, fmt.Errorf("output of job %d attempt %d: %w", job, attempt, err)
	}
	f := os.NewFile(uintptr(fd), path)
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, fmt.Errorf("output of job %d attempt %d: %w: it is no file", job, attempt, api.ErrRefused)
	}
	return f, nil
}

// tailLines are the lines of an output that are told of a failure, maxLine their bytes each.
const (
	tailLines = 10
	maxLine   = 500
)

// LastLines returns at most so many of the last lines that an attempt wrote, of which those that are long are cut; none
// if it wrote nothing, or that cannot be read. They are as written, but for bytes that are no UTF-8: see Printable.
func LastLines(dir string, job sched.JobID, attempt int32, lines int) (list []string) {
	f, err := openOutput(dir, job, attempt)
	if err != nil || f == nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	most := int64(lines) * maxPiece // of the end: a bar may be one line of megabytes, and what went wrong stands behind it
	b, err := io.ReadAll(io.NewSectionReader(f, max(tailOffset(f, lines), info.Size()-most), most))
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(b) {
		line = bytes.TrimRight(line, "\r\n")
		if i := bytes.LastIndexByte(line, '\r'); i >= 0 { // of a bar only what it showed last
			line = line[i+1:]
		}
		list = append(list, strings.ToValidUTF8(string(line[:min(len(line), maxLine)]), "\uFFFD"))
	}
	return list
}

// tailOffset returns where the last lines of f begin, as far as it looks back. A last line without its end counts.
func tailOffset(f *os.File, lines int) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	end := info.Size()
	if lines == 0 {
		return end
	}
	buf := make([]byte, maxPiece)
	for at, first := end, true; at > max(end-maxTail, 0); first = false {
		from := max(at-maxPiece, end-maxTail, 0)
		b := buf[:at-from]
		if _, err := f.ReadAt(b, from); err != nil {
			return end
		}
		if first && b[len(b)-1] == '\n' {
			b = b[:len(b)-1]
		}
		for len(b) > 0 {
			i := bytes.LastIndexByte(b, '\n')
			if i < 0 {
				break
			}
			if lines--; lines == 0 {
				return from + int64(i) + 1
			}
			b = b[:i]
		}
		at = from
	}
	return max(end-maxTail, 0)
}

// logEvent is how a piece is told: bytes that are no UTF-8 become U+FFFD.
func logEvent(p place, text []byte) []byte {
	b, err := json.Marshal(api.Output{Attempt: int(p.attempt), Text: string(text)})
	if err != nil {
		panic(err) // strings and numbers only
	}
	return b
}
