package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	// a fifth faster than the standard library's, and reading is half decompression
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

const byteOrderMark = "\ufeff"

// readText returns all of r, uncompressed and without a byte order mark, in blocks of whole lines. Blocks, because a
// single string would be copied, and its memory touched, several times while it grows.
func readText(r io.Reader, name string) ([]string, error) {
	var text []string
	b, err := newBlocks(r)
	line, total := 1, 0
	for err == nil {
		var block string
		if block, err = b.next(); block == "" {
			break
		}
		text = append(text, block)
		line += strings.Count(block, "\n")
		if total += len(block); total > MaxText {
			err = errLong
		}
	}
	if err != nil {
		return nil, inFile(name, line, err)
	}
	return text, nil
}

var errLong = fmt.Errorf("more than %d bytes of text, want less", MaxText)

// inFile says where err, met in reading, is: in a damaged file, or else next to it.
func inFile(name string, line int, err error) error {
	if errors.Is(err, errGzip) || errors.Is(err, errLong) || errors.Is(err, errSwollen) {
		return &ParseError{name, line, err.Error()}
	}
	return fmt.Errorf("trace: %s: %w", name, err)
}

// blocks cuts a text, uncompressed and without a byte order mark, into blocks of whole lines.
type blocks struct {
	in     io.Reader
	buffer []byte
	filled int
	begun  bool
	err    error // met in reading; io.EOF at the end
}

// newBlocks returns the blocks of r, which may be compressed with gzip.
func newBlocks(r io.Reader) (*blocks, error) {
	packed := &counting{Reader: r}
	in := bufio.NewReaderSize(packed, 64<<10)
	b := &blocks{in: in, buffer: make([]byte, 256<<10)}
	magic, err := in.Peek(2)
	if string(magic) != "\x1f\x8b" {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return b, err
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, damage(err)
	}
	b.in = &unzipped{z: z, packed: packed}
	return b, nil
}

// next returns the next block, which ends with a line unless it is the last; "" at the end. What was read before an
// error is returned as far as it is whole lines. A line longer than MaxLine ends a block, for the parser to refuse it,
// unless the text is JSON, which may be one line.
func (b *blocks) next() (string, error) {
	for {
		for b.err == nil && b.filled < len(b.buffer) {
			var n int
			n, b.err = b.in.Read(b.buffer[b.filled:])
			b.filled += n
		}
		end := b.filled
		if !errors.Is(b.err, io.EOF) {
			end = bytes.LastIndexByte(b.buffer[:b.filled], '\n') + 1
		}
		switch {
		case end > 0:
			return b.take(end), nil
		case errors.Is(b.err, io.EOF):
			return "", nil
		case b.err != nil:
			return "", b.err
		case b.filled > MaxText:
			return "", errLong
		case b.filled > MaxLine+len("\r\n") && !isJSON(b.buffer):
			return b.take(b.filled), nil
		}
		b.buffer = append(b.buffer, make([]byte, len(b.buffer))...)
	}
}

// take returns the first end bytes of the buffer, and drops them there.
func (b *blocks) take(end int) string {
	text := string(b.buffer[:end])
	b.filled = copy(b.buffer, b.buffer[end:b.filled])
	if !b.begun {
		b.begun = true
		if text = strings.TrimPrefix(text, byteOrderMark); text == "" {
			text, _ = b.next()
		}
	}
	return text
}

// isJSON reports whether a text that starts with head is JSON.
func isJSON[T ~string | ~[]byte](head T) bool {
	for i := range len(head) {
		switch head[i] {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return head[i] == '[' || head[i] == '{'
	}
	return false
}

var errGzip = errors.New("gzip")

// Bounds of what a gzip stream is unpacked to: a job takes many times the memory of its row, and a row that is repeated
// next to no room in the stream. Published traces grow by ten at most.
const (
	mostGrowth = 32
	freeGrowth = 4 << 20 // bytes beyond that
)

// errSwollen is the error of a stream that grows by more.
var errSwollen = fmt.Errorf("gzip stream of which more than %d times its size comes out, want less; "+
	"if it is what it should be, unpack it first (gunzip)", mostGrowth)

// counting counts what is read.
type counting struct {
	io.Reader
	n int
}

// Read is that of the reader.
func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += n
	return n, err
}

// unzipped reads what a gzip stream holds, up to where it is damaged, which is reported as errGzip, or grows too much.
type unzipped struct {
	z      *gzip.Reader
	packed *counting
	n      int
}

// Read is that of the stream; where that is damaged the error is errGzip, where it grows too much errSwollen.
func (u *unzipped) Read(b []byte) (int, error) {
	n, err := u.z.Read(b)
	if u.n += n; u.n > freeGrowth+mostGrowth*u.packed.n {
		return 0, errSwollen
	}
	if err != nil && err != io.EOF { //nolint:errorlint // the end is io.EOF itself; wrapped, it is damage
		err = damage(err)
	}
	return n, err
}

// damage says what an error met in reading a gzip stream means.
func damage(err error) error {
	switch bad := errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum); {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return fmt.Errorf("%w stream ends early, want the whole file", errGzip)
	case bad || errors.As(err, new(flate.CorruptInputError)):
		return fmt.Errorf("%w stream is damaged (%w), want an intact file", errGzip, err)
	}
	return err
}

// lines gives text line by line: blocks of whole lines, and those that more returns once they are used up.
type lines struct {
	blocks []string
	more   func() (block string, err error) // "" at the end; nil = there is no more
	rest   string                           // of the block being read
	line   int                              // number of the line read last

	seen, inBlock int   // where lineAt stands: blocks passed, bytes of the next one
	passed        int64 // bytes in all
	ends          int   // of lines
}

// next returns the next line without its line end; ok is false at the end of the text.
func (l *lines) next() (line string, ok bool, err error) {
	for l.rest == "" {
		if ok, err = l.fill(); !ok {
			return "", false, err
		}
		l.rest, l.blocks = l.blocks[0], l.blocks[1:]
	}
	l.line++
	line, l.rest = nextLine(l.rest)
	return line, true, nil
}

// fill ensures that there is a block; ok is false at the end of the text.
func (l *lines) fill() (ok bool, err error) {
	if len(l.blocks) == 0 && l.more != nil {
		var block string
		if block, err = l.more(); err == nil && block != "" {
			l.blocks = append(l.blocks, block)
		}
	}
	return len(l.blocks) > 0, err
}

// rows returns about how many rows the blocks hold: the number of lines, unless these are so short that most must be
// empty, which is no reason to fill the memory.
func (l *lines) rows() int {
	n, size := 1, 0
	for _, block := range l.blocks {
		n += strings.Count(block, "\n")
		size += len(block)
	}
	return min(n, size/len("a,0,1,1\n")+1)
}

// reader returns all blocks for reading. They stay, so that lineAt can find lines.
func (l *lines) reader() io.Reader {
	var list []io.Reader
	for _, block := range l.blocks {
		list = append(list, strings.NewReader(block))
	}
	return io.MultiReader(list...)
}

// lineAt returns the number of the line that the byte at offset lies in. Offsets must not fall from call to call.
func (l *lines) lineAt(offset int64) int {
	for l.seen < len(l.blocks) && l.passed < offset {
		block := l.blocks[l.seen][l.inBlock:]
		n := min(int64(len(block)), offset-l.passed)
		l.ends += strings.Count(block[:n], "\n")
		l.passed += n
		if l.inBlock += int(n); n == int64(len(block)) {
			l.seen, l.inBlock = l.seen+1, 0
		}
	}
	return 1 + l.ends
}

// nextLine cuts the first line off text, without its line end (LF or CRLF).
func nextLine(text string) (line, rest string) {
	line, rest, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}

// split appends the fields of a line of a file of format l to dst; ok is false if quotation marks are wrong.
func (l *layout) split(line string, dst []string) (fields []string, ok bool) {
	switch l.separator {
	case 0:
		return split(line, dst)
	case ' ':
		return append(dst, strings.Fields(line)...), true
	}
	for {
		at := strings.IndexByte(line, l.separator)
		if at < 0 {
			return append(dst, line), true
		}
		dst = append(dst, line[:at])
		line = line[at+1:]
	}
}

// unblank leaves out the blanks before a field between commas: many write one behind each comma.
func unblank(field string) string {
	for field != "" && isBlank(field[0]) {
		field = field[1:]
	}
	return field
}

// bare leaves out the blanks behind a field too, by which columns are lined up.
func bare(field string) string {
	field = unblank(field)
	for field != "" && isBlank(field[len(field)-1]) {
		field = field[:len(field)-1]
	}
	return field
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// split appends the fields of a line, separated by commas, to dst, without blanks around them. A field that starts with
// a quotation mark ends with one; within it commas and blanks are letters and two quotation marks stand for one. ok is
// false if a quotation mark is left open or followed by anything but a comma.
func split(line string, dst []string) (fields []string, ok bool) {
	for {
		line = unblank(line)
		if line != "" && line[0] == '"' {
			field, rest, ok := unquote(line[1:])
			if rest = unblank(rest); !ok || rest != "" && rest[0] != ',' {
				return dst, false
			}
			if dst = append(dst, field); rest == "" {
				return dst, true
			}
			line = rest[1:]
			continue
		}
		comma := 0 // fields are short: this loop beats IndexByte
		for comma < len(line) && line[comma] != ',' {
			comma++
		}
		if comma == len(line) {
			return append(dst, bare(line)), true
		}
		dst = append(dst, bare(line[:comma]))
		line = line[comma+1:]
	}
}

// unquote reads a quoted field whose opening mark has been cut off and returns what follows the closing one.
func unquote(s string) (field, rest string, ok bool) {
	for at := 0; ; {
		mark := strings.IndexByte(s[at:], '"')
		if mark < 0 {
			return "", "", false
		}
		at += mark + 1
		if at == len(s) || s[at] != '"' {
			return strings.ReplaceAll(s[:at-1], `""`, `"`), s[at:], true
		}
		at++
	}
}

// printable reports whether s is a word a trace may hold: short enough, valid UTF-8, no control characters.
func printable(s string) bool {
	if len(s) > MaxWord {
		return false
	}
	ascii := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == 0x7f {
			return false
		} else if c >= utf8.RuneSelf {
			ascii = false
		}
	}
	return ascii || utf8.ValidString(s)
}

// clip shortens a value of the file for an error message.
func clip(s string) string {
	if len(s) <= 60 {
		return s
	}
	return s[:60] + "..."
}
