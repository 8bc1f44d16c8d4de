package interference

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// format is the first byte that Save writes.
const format = 1

// Save appends all that h remembers, set by set in the order in which they became known. HalfLife is not part of it.
func (h *History) Save(b []byte) []byte {
	b = binary.AppendUvarint(append(b, format), uint64(len(h.list)))
	for i := range h.list {
		e := &h.list[i]
		b = append(b, byte(e.place.How), one(e.oom))
		b = binary.AppendUvarint(b, uint64(e.place.Width))
		b = appendText(b, e.place.GPU)
		b = binary.AppendUvarint(b, uint64(len(e.models)))
		b = binary.AppendVarint(b, int64(e.last))
		b = appendFloat(b, e.worst)
		for k, name := range e.models {
			b = appendText(b, name)
			for _, x := range e.slow[k].numbers() {
				b = appendFloat(b, *x)
			}
		}
	}
	return b
}

func (m *mean) numbers() [4]*float64 { return [4]*float64{&m.weight, &m.squares, &m.mean, &m.off} }

func one(is bool) byte {
	if is {
		return 1
	}
	return 0
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendFloat(b []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
}

// Load replaces what h remembers by what Save wrote. On error h stays as it was.
func (h *History) Load(b []byte) error {
	d := &decoder{b: b}
	if d.byte() != format {
		return fmt.Errorf("interference: load: %d bytes that do not start with format %d", len(b), format)
	}
	next := History{HalfLife: h.HalfLife, changes: h.changes}
	for range d.uvarint() {
		if d.failed {
			break
		}
		d.entry(&next)
	}
	if d.failed || len(d.b) > 0 {
		return errors.New("interference: load: bytes that Save did not write")
	}
	next.changes++
	*h = next
	return nil
}

// decoder reads what Save wrote; after the first thing wrong it reads zeros.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) entry(h *History) {
	p := Place{How: sched.Mechanism(d.byte())}
	oom := d.byte()
	width := d.uvarint()
	p.Width, p.GPU = int32(min(width, math.MaxInt32)), d.text()
	n := d.uvarint()
	last, worst := sched.Time(d.varint()), d.float()
	if d.failed = d.failed || n > MaxSet || oom > 1 || width > math.MaxInt32; d.failed {
		return
	}
	models, slow := make([]string, n), make([]mean, n)
	for k := range models {
		models[k] = d.text()
		for _, x := range slow[k].numbers() {
			*x = d.float()
		}
		d.failed = d.failed || !slow[k].possible()
	}
	known := h.Len()
	if d.failed = d.failed || checkSet(p, models) != nil || !slices.IsSorted(models) ||
		!(worst >= 0 && worst <= MaxSlow); d.failed {
		return
	}
	e := h.entry(p, models)
	d.failed = h.Len() == known // the same set again
	e.slow, e.oom, e.last, e.worst = slow, oom == 1, last, worst
}

// maxMean bounds means: of slow-downs, and of the seconds of epochs.
const maxMean = 1e9

// possible reports whether measurements can lead to m.
func (m *mean) possible() bool {
	if m.weight == 0 {
		return *m == mean{}
	}
	return m.weight >= 1 && m.weight < 1e15 && m.squares >= 1 && m.squares <= m.weight && m.mean > 0 &&
		m.mean <= maxMean && m.off >= 0 && m.off < 1e30
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.failed = true
		return 0
	}
	x := d.b[0]
	d.b = d.b[1:]
	return x
}

func (d *decoder) uvarint() uint64 {
	x, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.failed = true
		return 0
	}
	d.b = d.b[n:]
	return x
}

func (d *decoder) varint() int64 {
	x, n := binary.Varint(d.b)
	if n <= 0 {
		d.failed = true
		return 0
	}
	d.b = d.b[n:]
	return x
}

func (d *decoder) float() float64 {
	if len(d.b) < 8 {
		d.failed = true
		return 0
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(d.b))
	d.b = d.b[8:]
	return x
}

func (d *decoder) text() string {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.failed = true
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}
