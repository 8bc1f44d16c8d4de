package kept

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/driver/local/beneath"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// Limits of reading what jobs write.
const (
	maxPiece = 64 << 10 // bytes that are read and sent at once: a line may have any length, and is never held
	maxTail  = 8 << 20  // bytes that Tail looks back
)

// Outputs are what the jobs of a state folder write: one file for each attempt. A place in one is the number of bytes
// before it.
type Outputs string

// Open opens what an attempt wrote.
func (o Outputs) Open(_ context.Context, from site.Source) (site.Output, error) {
	if from.Rank != 0 {
		return nil, fmt.Errorf("%w: rank %d; all ranks of a job of one machine write one output, that of rank 0",
			api.ErrRefused, from.Rank)
	}
	f, err := openOutput(string(o), from.Job, from.Attempt)
	if err != nil || f == nil {
		return nil, err
	}
	return &output{file: f, buf: make([]byte, maxPiece)}, nil
}

// Last returns when an attempt last wrote.
func (o Outputs) Last(from site.Source) (time.Time, bool) {
	path, err := filepath.Rel(string(o), outputPath(string(o), from.Job, from.Attempt))
	if err != nil {
		return time.Time{}, false
	}
	info, err := beneath.Stat(string(o), path)
	if err != nil {
		return time.Time{}, false
	}
	return info.ModTime(), true
}

// Place reads a place.
func (Outputs) Place(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return fmt.Errorf("%w: place %q, want a number of bytes", api.ErrMalformed, text)
	}
	return nil
}

// output is the file that an attempt writes, for one reader.
type output struct {
	file *os.File
	buf  []byte
}

// offset is the number of bytes before a place.
func offset(place string) int64 {
	n, _ := strconv.ParseInt(place, 10, 64) // Place has read it
	return n
}

// Next returns the next piece behind a place.
func (o *output) Next(place string, over bool) (text []byte, behind string, err error) {
	at := offset(place)
	n, missing, err := o.read(at)
	if err != nil {
		return nil, place, err
	}
	if missing > 0 {
		return notKept(missing), strconv.FormatInt(at+missing, 10), nil
	}
	if n == 0 {
		if info, err := o.file.Stat(); err == nil && info.Size() < at {
			return nil, site.Start, nil // the job made its output empty and starts again
		}
		return nil, place, nil
	}
	text = o.buf[:n]
	if !over || n == len(o.buf) {
		if text = wholeRunes(text); len(text) == 0 && o.cutAt(at, n) {
			text = o.buf[:n] // the rest of it is not kept
		}
	}
	return text, strconv.FormatInt(at+int64(len(text)), 10), nil
}

// read reads what is kept at a place, up to where something is not: n bytes into the buffer. missing is how many bytes
// are not kept there; then nothing is read.
func (o *output) read(at int64) (n int, missing int64, err error) {
	for {
		from, to, err := shim.Data(o.file, at)
		if err != nil {
			return 0, 0, err
		}
		if from > at {
			info, bad := o.file.Stat()
			if bad != nil {
				return 0, 0, bad
			}
			return 0, max(min(from, info.Size())-at, 0), nil
		}
		n, err = o.file.ReadAt(o.buf[:min(int64(len(o.buf)), to-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		// what was given back meanwhile was read as zeros
		if still, end, bad := shim.Data(o.file, at); n == 0 || bad == nil && still == at && end >= at+int64(n) {
			return n, 0, nil
		}
	}
}

// cutAt reports whether what was read at a place ends where something is not kept.
func (o *output) cutAt(at int64, n int) bool {
	info, err := o.file.Stat()
	if err != nil || info.Size() <= at+int64(n) {
		return false
	}
	from, _, err := shim.Data(o.file, at+int64(n))
	return err == nil && from > at+int64(n)
}

// notKept says how much of an output is missing, on a line of its own.
func notKept(n int64) []byte {
	return fmt.Appendf(nil, "\n[trainyard: %d bytes (%.1f MiB) of the output are not kept]\n", n, float64(n)/(1<<20))
}

// Tail returns where the last lines behind a place start.
func (o *output) Tail(place string, lines int) string {
	return strconv.FormatInt(max(offset(place), tailOffset(o.file, lines)), 10)
}

// Close closes the file.
func (o *output) Close() error { return o.file.Close() }

// wholeRunes returns b without the first bytes of a rune at its end.
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
	path, err := filepath.Rel(dir, outputPath(dir, job, attempt))
	if err != nil {
		return nil, err
	}
	f, err := beneath.Open(dir, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil //nolint:nilnil // nothing was written, which is no error
	case errors.Is(err, beneath.ErrNotRegular):
		return nil, fmt.Errorf("output of job %d attempt %d: %w: it is no file", job, attempt, api.ErrRefused)
	case err != nil:
		return nil, fmt.Errorf("output of job %d attempt %d: %w", job, attempt, err)
	}
	return f, nil
}

// maxLine is how many bytes of a line Tail returns at most.
const maxLine = 500

// Tail returns at most so many of the last lines that an attempt wrote, of which those that are long are cut; none if
// it wrote nothing, or that cannot be read. They are as written, but for bytes that are no UTF-8: see Printable.
func (o Outputs) Tail(job sched.JobID, attempt int32, lines int) (list []string) {
	f, err := openOutput(string(o), job, attempt)
	if err != nil || f == nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	// Of the end: a bar may be one line of megabytes, and what went wrong stands behind it.
	most := int64(lines) * maxPiece
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

// tailOffset returns where the last lines of f start, as far as it looks back. A last line without its end counts.
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
