package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strconv"
	"strings"
)

// ColumnsSchema names the form of packed columns: the length of the header as four bytes, the least first; the header,
// which is JSON; the data. All of it is compressed by gzip and written in base64.
//
// Numbers of a column are of as many bytes as the largest needs, the least first. They lie in planes: first the least
// byte of all, then the next. A signed number n is written as 2n, or as -2n-1 if it is below 0. A delta column holds
// the difference to the number before. Texts are UTF-8, one behind the other; their lengths in bytes are a column. Of a
// numbered column NAME the texts are those of the word column NAME.before, each with the number of NAME.number in
// decimal digits behind it; -1 = with nothing behind it.
const ColumnsSchema = "trainyard.columns/v1"

type columnHeader struct {
	Schema string        `json:"schema"`
	Tables []tableHeader `json:"tables"`
}

type tableHeader struct {
	Name    string       `json:"name"`
	Rows    int          `json:"rows"`
	Columns []columnSpec `json:"columns"`
}

type columnSpec struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"` // int, text, word or numbered
	At     int      `json:"at"`   // offset of its data
	Bytes  int      `json:"bytes"`
	Planes int      `json:"planes,omitempty"`
	Signed bool     `json:"signed,omitempty"`
	Delta  bool     `json:"delta,omitempty"`
	Words  []string `json:"words,omitempty"` // of a word column, by number
}

// columns are tables under construction.
type columns struct {
	header columnHeader
	data   []byte
	raw    []uint64 // scratch
}

func (c *columns) table(name string, rows int) {
	c.header.Schema = ColumnsSchema
	c.header.Tables = append(c.header.Tables, tableHeader{Name: name, Rows: rows, Columns: []columnSpec{}})
}

func (c *columns) put(s columnSpec) {
	t := &c.header.Tables[len(c.header.Tables)-1]
	t.Columns = append(t.Columns, s)
}

// ints adds a column of the current table; of every row.
func (c *columns) ints(name string, rows int, of func(i int) int64) { c.numbers(name, rows, false, of) }

// deltas adds a column whose numbers are near the ones before.
func (c *columns) deltas(name string, rows int, of func(i int) int64) {
	c.numbers(name, rows, true, of)
}

func (c *columns) numbers(name string, rows int, delta bool, of func(i int) int64) {
	spec, last, most := columnSpec{Name: name, Kind: "int", Delta: delta}, int64(0), uint64(0)
	list := make([]int64, rows)
	for i := range list {
		n := of(i)
		if delta {
			n, last = n-last, n
		}
		list[i] = n
		spec.Signed = spec.Signed || n < 0
	}
	c.raw = c.raw[:0]
	for _, n := range list {
		u := uint64(n)
		if spec.Signed {
			u = uint64(n<<1) ^ uint64(n>>63)
		}
		most |= u
		c.raw = append(c.raw, u)
	}
	spec.At, spec.Planes = len(c.data), (bits.Len64(most)+7)/8
	for p := range spec.Planes {
		for _, u := range c.raw {
			c.data = append(c.data, byte(u>>(8*p)))
		}
	}
	spec.Bytes = len(c.data) - spec.At
	c.put(spec)
}

// texts adds a column of texts. What is no UTF-8 is shown as such.
func (c *columns) texts(name string, rows int, of func(i int) string) {
	all := make([]string, rows)
	for i := range all {
		all[i] = strings.ToValidUTF8(of(i), "\uFFFD")
	}
	if c.numbered(name, all) {
		return
	}
	c.ints(name+".length", rows, func(i int) int64 { return int64(len(all[i])) })
	spec := columnSpec{Name: name, Kind: "text", At: len(c.data)}
	for _, s := range all {
		c.data = append(c.data, s...)
	}
	spec.Bytes = len(c.data) - spec.At
	c.put(spec)
}

// numbered adds a column of texts as words with numbers behind them, where that says most of them in less: names of
// jobs are often numbers, or differ in one. It reports whether it did.
func (c *columns) numbered(name string, all []string) bool {
	before, numbers, known := make([]string, len(all)), make([]int64, len(all)), map[string]bool{}
	for i, s := range all {
		before[i], numbers[i] = splitNumber(s)
		known[before[i]] = true
	}
	if len(all) < fewestNumbered || len(known) > len(all)/8 {
		return false
	}
	c.words(name+".before", len(all), func(i int) string { return before[i] })
	c.deltas(name+".number", len(all), func(i int) int64 { return numbers[i] })
	c.put(columnSpec{Name: name, Kind: "numbered", At: len(c.data)})
	return true
}

// fewestNumbered is from how many texts on a column may be numbered, mostDigits how many digits a number has at most: a
// browser knows whole numbers up to 2^53.
const (
	fewestNumbered = 64
	mostDigits     = 15
)

// splitNumber splits the number off the end of a text, so that its digits behind the rest are the text; -1 = it ends in
// none.
func splitNumber(s string) (before string, number int64) {
	at := len(s)
	for at > 0 && len(s)-at < mostDigits && s[at-1] >= '0' && s[at-1] <= '9' {
		at--
	}
	for at < len(s)-1 && s[at] == '0' { // no number starts with 0
		at++
	}
	n, err := strconv.ParseInt(s[at:], 10, 64)
	if err != nil {
		return s, -1
	}
	return s[:at], n
}

// words adds a column of words that come again and again.
func (c *columns) words(name string, rows int, of func(i int) string) {
	numbers, words := map[string]int64{}, []string{}
	c.ints(name, rows, func(i int) int64 {
		w := strings.ToValidUTF8(of(i), "\uFFFD")
		n, ok := numbers[w]
		if !ok {
			n = int64(len(words))
			numbers[w], words = n, append(words, w)
		}
		return n
	})
	t := &c.header.Tables[len(c.header.Tables)-1]
	t.Columns[len(t.Columns)-1].Kind, t.Columns[len(t.Columns)-1].Words = "word", words
}

// pack returns the tables as text.
func (c *columns) pack() ([]byte, error) {
	head, err := json.Marshal(&c.header)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, 6)
	if err != nil {
		return nil, err
	}
	whole := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(head)+len(c.data)), uint32(len(head)))
	whole = append(append(whole, head...), c.data...)
	if _, err := z.Write(whole); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return base64.StdEncoding.AppendEncode(nil, packed.Bytes()), nil
}
