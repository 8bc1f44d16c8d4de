// Package csvtable reads small comma-separated tables with a header line for the readers of measured models. Errors
// name the table, the line and what was wanted instead:
//
//	power: v100.csv: line 3: power_limit "fast", want a number from 1 to 1e+06
//
// It deliberately knows nothing of what a table means.
package csvtable

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxBytes is how much of a table Open reads; a larger one is an error.
const MaxBytes = 1 << 26

// maxText is the length of a name in bytes.
const maxText = 256

// Table is a table whose header has been read.
type Table struct {
	Header []string // names of the columns, no two alike
	Row    []string // as many fields as the header; they hold until the next row

	kind Kind
	name string
	text *io.LimitedReader
	csv  *csv.Reader
	line int
	rows int
}

// Kind says of tables who reads them and how much of them.
type Kind struct {
	Prefix string // of errors: the package that reads
	Empty  string // what errors call a table of nothing; "" = empty
	Bytes  int64  // of a table; a larger one is an error
	Rows   int    // below the header, likewise; 0 = as many as there are
}

// Open reads the header. Errors start with prefix, the package that reads, and call the table by name.
func Open(r io.Reader, prefix, name string) (*Table, error) {
	return Kind{Prefix: prefix, Bytes: MaxBytes}.Open(r, name)
}

// Open reads the header. Errors call the table by name.
func (k Kind) Open(r io.Reader, name string) (*Table, error) {
	t := &Table{kind: k, name: name, text: &io.LimitedReader{R: r, N: k.Bytes}, line: 1, rows: -1}
	in := bufio.NewReader(t.text)
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" {
		_, _ = in.Discard(len(mark))
	}
	t.csv = csv.NewReader(in)
	t.csv.ReuseRecord = true
	if more, err := t.Next(); !more {
		if err == nil {
			err = t.Fail("%s, want a header line and rows", cmp.Or(k.Empty, "empty"))
		}
		return nil, err
	}
	t.Header = slices.Clone(t.Row)
	for i, column := range t.Header {
		if slices.Contains(t.Header[:i], column) {
			return nil, t.Fail("column %s twice, want it once", Quote(column))
		}
	}
	return t, nil
}

// Find returns where the columns are, -1 for those that are not there.
func (t *Table) Find(columns ...string) []int {
	at := make([]int, len(columns))
	for i, c := range columns {
		at[i] = slices.Index(t.Header, c)
	}
	return at
}

// Need is Find for columns that must be there.
func (t *Table) Need(columns ...string) ([]int, error) {
	at := t.Find(columns...)
	if i := slices.Index(at, -1); i >= 0 {
		return nil, t.Fail("no column %s, want the columns %s", Quote(columns[i]), strings.Join(columns, ", "))
	}
	return at, nil
}

// Only returns an error unless the columns are exactly those, in any order.
func (t *Table) Only(columns ...string) error {
	if _, err := t.Need(columns...); err != nil {
		return err
	}
	for _, c := range t.Header {
		if !slices.Contains(columns, c) {
			return t.Fail("unknown column %s, want the columns %s", Quote(c), strings.Join(columns, ", "))
		}
	}
	return nil
}

// Each calls row for each row, which has as many fields as the header, and returns the first error.
func (t *Table) Each(row func() error) error {
	for {
		if more, err := t.Next(); err != nil || !more {
			return err
		}
		if err := row(); err != nil {
			return err
		}
	}
}

// Next goes to the next row. It is false at the end and after an error.
func (t *Table) Next() (bool, error) {
	row, err := t.csv.Read()
	if len(row) > 0 {
		t.line, _ = t.csv.FieldPos(0)
	}
	t.rows++
	var malformed *csv.ParseError
	switch {
	case t.text.N <= 0:
		return false, t.Fail("more than %d bytes, want less", t.kind.Bytes)
	case errors.Is(err, io.EOF):
		return false, nil
	case t.kind.Rows > 0 && t.rows > t.kind.Rows:
		return false, t.Fail("more than %d rows, want less", t.kind.Rows)
	case errors.Is(err, csv.ErrFieldCount):
		return false, t.Fail("%d fields, want %d as in the header", len(row), len(t.Header))
	case errors.As(err, &malformed):
		t.line = malformed.StartLine
		return false, t.Fail("%w, want comma-separated values", malformed.Err)
	case err != nil:
		return false, t.Fail("%w", err)
	}
	t.Row = row
	return true, nil
}

// Line returns the line of the row read last, from 1.
func (t *Table) Line() int { return t.line }

// Raw returns the field of the row in a column of the header.
func (t *Table) Raw(column string) string { return t.Row[slices.Index(t.Header, column)] }

// Text returns the field of the row in a column: a name of 1 to 256 bytes in printable UTF-8.
func (t *Table) Text(column string) (string, error) {
	s := t.Raw(column)
	if s == "" || len(s) > maxText || !utf8.ValidString(s) ||
		strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", t.Fail("%s %s, want a name of 1 to %d bytes without control characters", column, Quote(s), maxText)
	}
	return s, nil
}

// Number returns the field of the row in a column: a number from least to most.
func (t *Table) Number(column string, least, most float64) (float64, error) {
	x, err := strconv.ParseFloat(t.Raw(column), 64)
	if err != nil || !(x >= least && x <= most) {
		return 0, t.Fail("%s %s, want a number from %g to %g", column, Quote(t.Raw(column)), least, most)
	}
	return x, nil
}

// Fail returns an error about the row.
func (t *Table) Fail(format string, args ...any) error {
	return fmt.Errorf("%s: %s: line %d: %w", t.kind.Prefix, t.name, t.line, fmt.Errorf(format, args...))
}

// Quote quotes text for an error, cut to a length fit to print.
func Quote(text string) string {
	const longest = 80
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return strconv.Quote(text)
}
