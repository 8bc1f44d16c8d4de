package speedup

import (
	"io"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/internal/csvtable"
)

// Limits on what the readers take in, far above any file we know of.
const (
	maxText  = 1 << 28 // bytes of a file
	maxRows  = 1 << 22 // of a file
	maxCount = 1 << 30 // of a batch size, a number of GPUs, an epoch, ...
	maxValue = 1e300   // of a number
)

// table reads a comma-separated file with a header line. Errors name file and line.
type table struct{ *csvtable.Table }

// openTable reads the header. name is what errors call the file.
func openTable(r io.Reader, name string) (table, error) {
	t, err := csvtable.Kind{Prefix: "speedup", Empty: "empty file", Bytes: maxText, Rows: maxRows}.Open(r, name)
	return table{t}, err
}

// only returns where the columns are, which must all be there, and no others.
func (t table) only(columns ...string) ([]int, error) { return t.Find(columns...), t.Only(columns...) }

// number reads the field in column i of the row as a number in least..maxValue.
func (t table) number(i int, least float64) (float64, error) {
	x, err := strconv.ParseFloat(t.Row[i], 64)
	if err != nil || !(x >= least && x <= maxValue) {
		return 0, t.Fail("%s %s, want a number >= %v", t.Header[i], csvtable.Quote(t.Row[i]), least)
	}
	return x, nil
}

// count reads the field in column i of the row as a whole number in 1..maxCount.
func (t table) count(i int) (int, error) {
	n, ok := parseCount(t.Row[i])
	if !ok {
		return 0, t.Fail("%s %s, want a whole number from 1 to %d", t.Header[i], csvtable.Quote(t.Row[i]), maxCount)
	}
	return n, nil
}

// parseCount reads a whole number from 1 to maxCount, which some published files write as 20.0.
func parseCount(s string) (n int, ok bool) {
	n, err := strconv.Atoi(strings.TrimSuffix(s, ".0"))
	return n, err == nil && n >= 1 && n <= maxCount
}
