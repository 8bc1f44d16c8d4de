package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// format is the number of the format. Another one is refused.
const format = 1

// maxLine is how long a line between parts may be, in bytes.
const maxLine = 4 << 10

// maxNeed is how long an environment or a script may be, in bytes.
const maxNeed = 16 << 20

// The parts that a backup has: the first always. Those of Env and Script are there as jobs need them.
const (
	Log    = "trainyard.db"
	Tokens = "tokens.json"
)

// Env is the part of an environment, by its digest.
func Env(digest string) string { return "env/" + digest }

// Script is the part of a script, by its digest.
func Script(digest, name string) string { return "snapshots/" + digest + "/" + name }

// Need returns what a part is that jobs need: an environment, or a script of that name. Without a digest it is neither.
func Need(part string) (digest, name string, env bool) {
	kind, rest, _ := strings.Cut(part, "/")
	digest, name, script := strings.Cut(rest, "/")
	env = kind == "env" && !script
	script = kind == "snapshots" && script && name == filepath.Base(name) && name != "." && name != ".." && name != "/"
	if len(digest) != 2*sha256.Size || strings.Trim(digest, "0123456789abcdef") != "" || !env && !script {
		return "", "", false
	}
	return digest, name, env
}

// ErrBroken says that a file is no backup, or not as it was written.
var ErrBroken = errors.New("want a backup as `trainyard backup` writes it; take another copy of it, or an older one")

// Head says of what a backup is.
type Head struct {
	Format  int       `json:"trainyard_backup"`
	Made    time.Time `json:"made"`
	Version string    `json:"version"` // of the program that made it
}

// part announces the bytes behind its line.
type part struct {
	Name string `json:"part"`
	Size int64  `json:"size"`
	Sum  string `json:"sha256"`
}

// end is the last line.
type end struct {
	Parts int    `json:"parts"`
	Sum   string `json:"sha256"`
}

// Writer writes a backup. Add its parts, then Close it.
type Writer struct {
	w     io.Writer
	all   hash.Hash
	parts int
}

// NewWriter starts a backup; Format of its head is set.
func NewWriter(w io.Writer, h Head) (*Writer, error) {
	out := &Writer{all: sha256.New()}
	out.w = io.MultiWriter(w, out.all)
	h.Format = format
	return out, out.line(h)
}

func (w *Writer) line(x any) error {
	b, err := json.Marshal(x)
	if err == nil {
		_, err = w.w.Write(append(b, '\n'))
	}
	return err
}

// Add writes a part, which is read twice: first for its checksum. It must not change meanwhile.
func (w *Writer) Add(name string, r io.ReadSeeker) error {
	sum := sha256.New()
	size, err := io.Copy(sum, r)
	if err == nil {
		_, err = r.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = w.line(part{name, size, hex.EncodeToString(sum.Sum(nil))})
	}
	if err != nil {
		return err
	}
	w.parts++
	n, err := io.Copy(w.w, io.LimitReader(r, size))
	if err == nil && n < size {
		err = fmt.Errorf("%s became shorter while it was read: %w", name, io.ErrUnexpectedEOF)
	}
	return err
}

// Close writes the end of the backup.
func (w *Writer) Close() error { return w.line(end{w.parts, hex.EncodeToString(w.all.Sum(nil))}) }

// reader reads a backup.
type reader struct {
	r    *bufio.Reader
	at   int64 // bytes read
	all  hash.Hash
	seen map[string]bool // parts
}

// Read reads a backup to its end, and calls take with each part in turn; what take leaves is passed over. Only once
// Read has returned without an error is what take got the backup. An error about the file wraps ErrBroken and has the
// place, in bytes from the start.
func Read(r io.Reader, take func(name string, r io.Reader) error) (Head, error) {
	in := &reader{r: bufio.NewReaderSize(r, 64<<10), all: sha256.New(), seen: make(map[string]bool)}
	head, err := in.head()
	for more := true; err == nil && more; {
		more, err = in.next(take)
	}
	return head, err
}

// broken is an error at byte at.
func broken(at int64, text string, args ...any) error {
	return fmt.Errorf("byte %d: %s: %w", at, fmt.Sprintf(text, args...), ErrBroken)
}

// line reads a line, without its end, and does not add it to the checksum.
func (r *reader) line() ([]byte, error) {
	at := r.at
	var line []byte
	for {
		b, err := r.r.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil, broken(at, "it ends before its last line: it was cut, or the backup was not finished")
		case errors.Is(err, io.EOF):
			return nil, broken(at, "it ends within a line")
		case err != nil:
			return nil, err
		}
		if r.at++; b == '\n' {
			return line, nil
		}
		if line = append(line, b); len(line) > maxLine {
			return nil, broken(at, "a line longer than %d bytes", maxLine)
		}
	}
}

// add adds a line to the checksum of all.
func (r *reader) add(line []byte) { _, _ = r.all.Write(append(slices.Clip(line), '\n')) }

// decode reads a line as x, strictly.
func decode(line []byte, x any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(x); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

func (r *reader) head() (h Head, err error) {
	line, err := r.line()
	if err != nil {
		return h, err
	}
	var any struct {
		Format int `json:"trainyard_backup"`
	}
	if bad := json.Unmarshal(line, &any); bad != nil || any.Format < 1 {
		return h, broken(0, `it does not start with {"trainyard_backup":%d`, format)
	}
	if any.Format != format {
		return h, broken(0, "format %d, this Trainyard reads %d", any.Format, format)
	}
	if bad := decode(line, &h); bad != nil {
		return h, broken(0, "its first line: %v", bad)
	}
	r.add(line)
	return h, nil
}

// next reads a part, or the end: then there is no more.
func (r *reader) next(take func(string, io.Reader) error) (more bool, err error) {
	at := r.at
	line, err := r.line()
	if err != nil {
		return false, err
	}
	var p part
	if bad := decode(line, &p); bad != nil || p.Name == "" {
		return false, r.end(at, line)
	}
	switch digest, _, _ := Need(p.Name); {
	case p.Name != Log && p.Name != Tokens && digest == "":
		return false, broken(at, "an unknown part %q, want %s, %s, env/SHA-256 or snapshots/SHA-256/NAME", p.Name, Log,
			Tokens)
	case digest != "" && p.Size > maxNeed:
		return false, broken(at, "%s of %d bytes, want at most %d", p.Name, p.Size, maxNeed)
	case r.seen[p.Name]:
		return false, broken(at, "%s a second time", p.Name)
	case p.Size < 0:
		return false, broken(at, "%s of %d bytes", p.Name, p.Size)
	}
	r.add(line)
	r.seen[p.Name] = true
	return true, r.part(&p, take)
}

// part reads the bytes of a part.
func (r *reader) part(p *part, take func(string, io.Reader) error) error {
	from, sum := r.at, sha256.New()
	body := &counted{r: io.LimitReader(r.r, p.Size), n: &r.at, to: io.MultiWriter(r.all, sum)}
	err := take(p.Name, body)
	if err == nil {
		_, err = io.Copy(io.Discard, body)
	}
	switch {
	case err != nil:
		return err
	case r.at-from < p.Size:
		return broken(r.at, "it ends after %d of the %d bytes of %s", r.at-from, p.Size, p.Name)
	case hex.EncodeToString(sum.Sum(nil)) != p.Sum:
		return broken(from, "the %d bytes of %s are not those that were written, by their checksum", p.Size, p.Name)
	}
	return nil
}

// counted reads and counts, and copies what it reads.
type counted struct {
	r  io.Reader
	n  *int64
	to io.Writer
}

// Read reads from what is counted.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	*c.n += int64(n)
	_, _ = c.to.Write(b[:n]) // checksums take everything
	return n, err
}

// end checks the last line, which starts at byte at, and that nothing follows.
func (r *reader) end(at int64, line []byte) error {
	var e end
	if bad := decode(line, &e); bad != nil || e.Sum == "" {
		return broken(at, "a line that announces no part and is not the last one")
	}
	switch {
	case e.Parts != len(r.seen):
		return broken(at, "%d parts by its last line, %d are there", e.Parts, len(r.seen))
	case e.Sum != hex.EncodeToString(r.all.Sum(nil)):
		return broken(at, "what stands before the last line is not what was written, by its checksum")
	case !r.seen[Log]:
		return broken(at, "it has no %s", Log)
	}
	if _, err := r.r.ReadByte(); !errors.Is(err, io.EOF) {
		return broken(r.at, "it goes on after its last line")
	}
	return nil
}
