package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strings"
)

// ColumnsSchema names the form of packed columns: the length of the header as four bytes, the least first; the header,
// which is JSON; the data. All of it is compressed by gzip and written in base64.
//
// Numbers of a column are of as many bytes as the largest needs, the least first. They lie in planes: first the least
// byte of all, then the next. A signed number n is written as 2n, or as -2n-1 if it is below 0. A delta column holds
// the difference to the number before. Texts are UTF-8, one behind the other; their lengths in bytes are a column.
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
	Kind   string   `json:"kind"` // int, text or word
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
	c.ints(name+".length", rows, func(i int) int64 { return int64(len(all[i])) })
	spec := columnSpec{Name: name, Kind: "text", At: len(c.data)}
	for _, s := range all {
		c.data = append(c.data, s...)
	}
	spec.Bytes = len(c.data) - spec.At
	c.put(spec)
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
