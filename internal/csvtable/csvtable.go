// Package csvtable reads small comma-separated tables with a header line for the readers of measured models. Errors
// name the table, the line and what was wanted instead:
//
//	power: v100.csv: line 3: power_limit "fast", want a number from 1 to 1e+06
//
// It deliberately knows nothing of what a table means.
package csvtable

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

// MaxBytes is how much of a table is read; a larger one is an error.
const MaxBytes = 1 << 26

// maxText is the length of a name in bytes.
const maxText = 256

// Table is a table whose header has been read.
type Table struct {
	Header []string // names of the columns, no two alike

	prefix, name string
	text         *io.LimitedReader
	csv          *csv.Reader
	line         int
	row          []string
}

// Open reads the header. Errors start with prefix, the package that reads, and call the table by name.
func Open(r io.Reader, prefix, name string) (*Table, error) {
	t := &Table{prefix: prefix, name: name, text: &io.LimitedReader{R: r, N: MaxBytes}, line: 1}
	in := bufio.NewReader(t.text)
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" {
		_, _ = in.Discard(len(mark))
	}
	t.csv = csv.NewReader(in)
	if more, err := t.next(); !more {
		if err == nil {
			err = t.Fail("empty, want a header line and rows")
		}
		return nil, err
	}
	t.Header = slices.Clone(t.row)
	for i, column := range t.Header {
		if slices.Contains(t.Header[:i], column) {
			return nil, t.Fail("column %s twice, want it once", quote(column))
		}
	}
	return t, nil
}

// Only returns an error unless the columns are exactly those, in any order.
func (t *Table) Only(columns ...string) error {
	for _, c := range columns {
		if !slices.Contains(t.Header, c) {
			return t.Fail("no column %s, want the columns %s", quote(c), strings.Join(columns, ", "))
		}
	}
	for _, c := range t.Header {
		if !slices.Contains(columns, c) {
			return t.Fail("unknown column %s, want the columns %s", quote(c), strings.Join(columns, ", "))
		}
	}
	return nil
}

// Each calls row for each row, which has as many fields as the header, and returns the first error.
func (t *Table) Each(row func() error) error {
	for {
		if more, err := t.next(); err != nil || !more {
			return err
		}
		if err := row(); err != nil {
			return err
		}
	}
}

// next goes to the next row. It is false at the end and after an error.
func (t *Table) next() (bool, error) {
	row, err := t.csv.Read()
	if len(row) > 0 {
		t.line, _ = t.csv.FieldPos(0)
	}
	var malformed *csv.ParseError
	switch {
	case t.text.N <= 0:
		return false, t.Fail("more than %d bytes, want less", MaxBytes)
	case errors.Is(err, io.EOF):
		return false, nil
	case errors.Is(err, csv.ErrFieldCount):
		return false, t.Fail("%d fields, want %d as in the header", len(row), len(t.Header))
	case errors.As(err, &malformed):
		t.line = malformed.StartLine
		return false, t.Fail("%w, want comma-separated values", malformed.Err)
	case err != nil:
		return false, t.Fail("%w", err)
	}
	t.row = row
	return true, nil
}

// Raw returns the field of the row in a column of the header.
func (t *Table) Raw(column string) string { return t.row[slices.Index(t.Header, column)] }

// Text returns the field of the row in a column: a name of 1 to 256 bytes in printable UTF-8.
func (t *Table) Text(column string) (string, error) {
	s := t.Raw(column)
	if s == "" || len(s) > maxText || !utf8.ValidString(s) ||
		strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", t.Fail("%s %s, want a name of 1 to %d bytes without control characters", column, quote(s), maxText)
	}
	return s, nil
}

// Number returns the field of the row in a column: a number from least to most.
func (t *Table) Number(column string, least, most float64) (float64, error) {
	x, err := strconv.ParseFloat(t.Raw(column), 64)
	if err != nil || !(x >= least && x <= most) {
		return 0, t.Fail("%s %s, want a number from %g to %g", column, quote(t.Raw(column)), least, most)
	}
	return x, nil
}

// Fail returns an error about the row.
func (t *Table) Fail(format string, args ...any) error {
	return fmt.Errorf("%s: %s: line %d: %w", t.prefix, t.name, t.line, fmt.Errorf(format, args...))
}

// quote quotes text for an error, cut to a length fit to print.
func quote(text string) string {
	const longest = 80
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return strconv.Quote(text)
}
