package speedup

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Limits on what the readers take in, far above any file we know of.
const (
	maxText  = 1 << 28 // bytes of a file
	maxRows  = 1 << 22 // of a file
	maxCount = 1 << 30 // of a batch size, a number of GPUs, an epoch, ...
	maxValue = 1e300   // of a number
)

// table reads a comma-separated file with a header line. Errors name file and line.
type table struct {
	name   string
	text   *io.LimitedReader
	csv    *csv.Reader
	line   int // of the row read last, from 1
	rows   int
	header []string // names of the columns, no two alike
	row    []string // read last
}

// openTable reads the header. name is what errors call the file.
func openTable(r io.Reader, name string) (*table, error) {
	t := &table{name: name, text: &io.LimitedReader{R: r, N: maxText}, line: 1}
	in := bufio.NewReader(t.text)
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" {
		_, _ = in.Discard(len(mark))
	}
	t.csv = csv.NewReader(in)
	t.csv.ReuseRecord = true
	ok, err := t.next()
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, t.fail("empty file, want a header line and rows")
	}
	t.header, t.rows = slices.Clone(t.row), 0
	for i, column := range t.header {
		if slices.Contains(t.header[:i], column) {
			return nil, t.fail("column %s twice, want it once", quote(column))
		}
	}
	return t, nil
}

// next reads a row, with as many fields as the header; ok is false at the end of the file.
func (t *table) next() (ok bool, err error) {
	row, err := t.csv.Read()
	if len(row) > 0 {
		t.line, _ = t.csv.FieldPos(0)
	}
	t.row, t.rows = row, t.rows+1
	var malformed *csv.ParseError
	switch {
	case t.text.N <= 0:
		return false, t.fail("more than %d bytes, want less", maxText)
	case t.rows > maxRows:
		return false, t.fail("more than %d rows, want less", maxRows)
	case errors.Is(err, io.EOF):
		return false, nil
	case errors.Is(err, csv.ErrFieldCount):
		return false, t.fail("%d fields, want %d as in the header", len(row), len(t.header))
	case errors.As(err, &malformed):
		t.line = malformed.StartLine
		return false, t.fail("%w, want comma-separated values", malformed.Err)
	case err != nil:
		return false, fmt.Errorf("speedup: %s: line %d: %w", t.name, t.line, err)
	}
	return true, nil
}

func (t *table) fail(format string, args ...any) error {
	return fmt.Errorf("speedup: %s: line %d: %w", t.name, t.line, fmt.Errorf(format, args...))
}

// only returns where the columns are, which must all be there, and no others.
func (t *table) only(columns ...string) ([]int, error) {
	at := make([]int, len(columns))
	for i, column := range columns {
		if at[i] = slices.Index(t.header, column); at[i] < 0 {
			return nil, t.fail("no column %s, want the columns %s", quote(column), strings.Join(columns, ", "))
		}
	}
	for _, column := range t.header {
		if !slices.Contains(columns, column) {
			return nil, t.fail("unknown column %s, want the columns %s", quote(column), strings.Join(columns, ", "))
		}
	}
	return at, nil
}

// number reads the field in column i of the row as a number in least..maxValue.
func (t *table) number(i int, least float64) (float64, error) {
	x, err := strconv.ParseFloat(t.row[i], 64)
	if err != nil || !(x >= least && x <= maxValue) {
		return 0, t.fail("%s %s, want a number >= %v", t.header[i], quote(t.row[i]), least)
	}
	return x, nil
}

// count reads the field in column i of the row as a whole number in 1..maxCount.
func (t *table) count(i int) (int, error) {
	n, ok := parseCount(t.row[i])
	if !ok {
		return 0, t.fail("%s %s, want a whole number from 1 to %d", t.header[i], quote(t.row[i]), maxCount)
	}
	return n, nil
}

// parseCount reads a whole number from 1 to maxCount, which some published files write as 20.0.
func parseCount(s string) (n int, ok bool) {
	n, err := strconv.Atoi(strings.TrimSuffix(s, ".0"))
	return n, err == nil && n >= 1 && n <= maxCount
}

// quote quotes text for an error, cut to a length fit to print.
func quote(text string) string {
	const longest = 80
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return strconv.Quote(text)
}
