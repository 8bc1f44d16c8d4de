package trace

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const byteOrderMark = "\ufeff"

// readText returns all of r, uncompressed and without a byte order mark, in blocks of whole lines. Blocks, because a
// single string would be copied, and its memory touched, several times while it grows.
func readText(r io.Reader, name string) ([]string, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	var text []string
	magic, err := in.Peek(2)
	if string(magic) == "\x1f\x8b" {
		text, err = gunzip(in)
	} else if err == nil || errors.Is(err, io.EOF) {
		text, err = readBlocks(in)
	}
	if errors.Is(err, errGzip) || errors.Is(err, errLong) {
		line := 1
		for _, block := range text {
			line += strings.Count(block, "\n")
		}
		return nil, &ParseError{name, line, err.Error()}
	}
	if err != nil {
		return nil, fmt.Errorf("trace: %s: %w", name, err)
	}
	if len(text) > 0 {
		text[0] = strings.TrimPrefix(text[0], byteOrderMark)
	}
	return text, nil
}

var errLong = fmt.Errorf("more than %d bytes of text, want less", MaxText)

// readBlocks returns all of r in blocks that end with a line, but for the last. It stops behind a line that is longer
// than MaxLine, which the parser then refuses. What was read before an error is returned with it.
func readBlocks(r io.Reader) ([]string, error) {
	var blocks []string
	buffer := make([]byte, 256<<10)
	filled, total := 0, 0
	for {
		n, err := r.Read(buffer[filled:])
		filled += n
		if total += n; total > MaxText {
			return blocks, errLong
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return append(blocks, string(buffer[:filled])), err
		}
		if filled < len(buffer) {
			continue
		}
		end := bytes.LastIndexByte(buffer, '\n') + 1
		if end == 0 {
			if filled > MaxLine+len("\r\n") {
				return append(blocks, string(buffer)), nil
			}
			buffer = append(buffer, make([]byte, len(buffer))...)
			continue
		}
		blocks = append(blocks, string(buffer[:end]))
		filled = copy(buffer, buffer[end:])
	}
}

var errGzip = errors.New("gzip")

// gunzip returns what the gzip stream in holds, up to where it is damaged, which is reported as errGzip.
func gunzip(in io.Reader) (text []string, err error) {
	z, err := gzip.NewReader(in)
	if err == nil {
		text, err = readBlocks(z)
	}
	switch damage := errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum); {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return text, fmt.Errorf("%w stream ends early, want the whole file", errGzip)
	case damage || errors.As(err, new(flate.CorruptInputError)):
		return text, fmt.Errorf("%w stream is damaged (%w), want an intact file", errGzip, err)
	}
	return text, err
}

// nextLine cuts the first line off text, without its line end (LF or CRLF).
func nextLine(text string) (line, rest string) {
	line, rest, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}

// split appends the fields of a line to dst. A field that begins with a quotation mark ends with one; within it commas
// are letters and two quotation marks stand for one. ok is false if a quotation mark is left open or followed by
// anything but a comma.
func split(line string, dst []string) (fields []string, ok bool) {
	for {
		if line != "" && line[0] == '"' {
			field, rest, ok := unquote(line[1:])
			if !ok || rest != "" && rest[0] != ',' {
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
			return append(dst, line), true
		}
		dst = append(dst, line[:comma])
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
