package variability

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits on what the readers take in, far above any file we know of.
const (
	maxText = 1 << 28 // bytes of a file
	maxWord = 256     // bytes of a name
)

// table reads a comma-separated file with a header line. Errors name file and line.
type table struct {
	name   string
	text   *io.LimitedReader
	csv    *csv.Reader
	line   int      // of the row read last, from 1
	header []string // names of the columns, no two alike
}

// openTable reads the header. name is what errors call the file.
func openTable(r io.Reader, name string) (*table, error) {
	t := &table{name: name, text: &io.LimitedReader{R: r, N: maxText}, line: 1}
	in := bufio.NewReader(t.text)
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" {
		_, _ = in.Discard(len(mark))
	}
	t.csv = csv.NewReader(in)
	header, err := t.next()
	if errors.Is(err, io.EOF) {
		return nil, t.fail("empty file, want a header line and rows")
	}
	if err != nil {
		return nil, err
	}
	t.header = slices.Clone(header)
	for i, column := range t.header {
		if slices.Contains(t.header[:i], column) {
			return nil, t.fail("column %s twice, want it once", quote(column))
		}
	}
	t.csv.ReuseRecord = true
	return t, nil
}

// next returns the fields of the next row, as many as the header has; they hold until the next call. The error is
// io.EOF at the end of the file.
func (t *table) next() ([]string, error) {
	row, err := t.csv.Read()
	if len(row) > 0 {
		t.line, _ = t.csv.FieldPos(0)
	}
	var malformed *csv.ParseError
	switch {
	case t.text.N <= 0:
		return nil, t.fail("more than %d bytes, want less", maxText)
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case errors.Is(err, csv.ErrFieldCount):
		return nil, t.fail("%d fields, want %d as in the header", len(row), len(t.header))
	case errors.As(err, &malformed):
		t.line = malformed.StartLine
		return nil, t.fail("%w, want comma-separated values", malformed.Err)
	case err != nil:
		return nil, fmt.Errorf("variability: %s: line %d: %w", t.name, t.line, err)
	}
	return row, nil
}

func (t *table) fail(format string, args ...any) error {
	return fmt.Errorf("variability: %s: line %d: %w", t.name, t.line, fmt.Errorf(format, args...))
}

// find returns where the columns are, -1 for those that are not there.
func (t *table) find(names ...string) []int {
	at := make([]int, len(names))
	for i, name := range names {
		at[i] = slices.Index(t.header, name)
	}
	return at
}

// need is find for columns that must be there.
func (t *table) need(names ...string) ([]int, error) {
	at := t.find(names...)
	if i := slices.Index(at, -1); i >= 0 {
		return nil, t.fail("no column %s, want the columns %s", quote(names[i]), strings.Join(names, ", "))
	}
	return at, nil
}

// number reads a number in least..most; the error is what is wanted, alone.
func number(text string, least, most float64) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), !(x > 0):
		return 0, errors.New("a number > 0")
	case x < least || x > most:
		return 0, fmt.Errorf("a number in %v..%v", least, most)
	}
	return x, nil
}

// upTo reads a number in 0..most; the error is what is wanted, alone.
func upTo(text string, most float64) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= most) {
		return 0, fmt.Errorf("a number in 0..%v", most)
	}
	return x, nil
}

// wordOK reports whether s is a name that a file may hold: not empty, short, one line of UTF-8.
func wordOK(s string) bool {
	return s != "" && len(s) <= maxWord && utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool {
		return c < ' ' || c == 0x7f
	})
}

var wantedWord = fmt.Sprintf("a name of 1 to %d bytes without control characters", maxWord)

// quote quotes text for an error, cut to a length fit to print.
func quote(text string) string {
	const longest = 80
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return strconv.Quote(text)
}
