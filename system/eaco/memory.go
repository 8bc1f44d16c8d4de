package eaco

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/trainyard/trainyard/sched"
)

var errMemory = errors.New("eaco: memory that was not written by SaveJob or SaveRest")

// Format names what is saved.
func (*Decider) Format() string { return "eaco/1" }

// SaveJob appends what is remembered of job j, then what the learner does.
func (d *Decider) SaveJob(j sched.JobID, b []byte) []byte {
	if int(j) >= len(d.jobs) {
		return b
	}
	m := &d.jobs[j]
	b = append(b, flag(m.whole), flag(m.risk))
	for _, t := range []int64{int64(m.from), int64(m.until), int64(m.begin), int64(m.took), int64(m.edge)} {
		b = binary.AppendVarint(b, t)
	}
	b = binary.AppendUvarint(b, uint64(len(m.tried)))
	for _, set := range m.tried {
		b = binary.AppendUvarint(b, uint64(len(set)))
		for _, o := range set {
			b = binary.AppendUvarint(b, uint64(o))
		}
	}
	return d.know.Learner.SaveJob(j, b)
}

func flag(is bool) byte {
	if is {
		return 1
	}
	return 0
}

// LoadJob takes what SaveJob wrote; jobs come in the order of their numbers.
func (d *Decider) LoadJob(j sched.JobID, b []byte) error {
	r := &reader{b: b}
	m := memo{whole: r.uvarint() == 1, risk: r.uvarint() == 1}
	for _, t := range []*sched.Time{&m.from, &m.until, &m.begin} {
		*t = sched.Time(r.varint())
	}
	m.took, m.edge = time.Duration(r.varint()), sched.Time(r.varint())
	for range r.count() {
		var set []sched.JobID
		for range r.count() {
			set = append(set, sched.JobID(r.uvarint()))
		}
		m.tried = append(m.tried, set)
	}
	if r.failed {
		return errMemory
	}
	for len(d.jobs) <= int(j) {
		d.jobs = append(d.jobs, newMemo())
	}
	d.jobs[j] = m
	return d.know.Learner.LoadJob(j, r.b)
}

// SaveRest appends whether the queue is to be looked at, what was measured of GPUs, then what the learner knows.
func (d *core) SaveRest(b []byte) []byte {
	b = append(b, flag(d.dirty))
	b = binary.AppendUvarint(b, uint64(len(d.seen)))
	for i := range d.seen {
		s := &d.seen[i]
		b = binary.AppendVarint(binary.AppendVarint(b, int64(s.since)), int64(s.number))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.use))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.memGB))
	}
	return d.know.Learner.SaveRest(b)
}

// LoadRest takes what SaveRest wrote.
func (d *core) LoadRest(b []byte) error {
	r := &reader{b: b}
	d.dirty = r.uvarint() == 1
	d.loaded = d.loaded[:0]
	for range r.count() {
		s := seen{since: sched.Time(r.varint()), number: int32(r.varint()), use: r.float(), memGB: r.float()}
		d.loaded = append(d.loaded, s)
	}
	if r.failed {
		return errMemory
	}
	return d.know.Learner.LoadRest(r.b)
}

// reader reads numbers; after the first thing wrong it reads zeros.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) uvarint() uint64 {
	x, n := binary.Uvarint(r.b)
	return cut(r, x, n)
}

func (r *reader) varint() int64 {
	x, n := binary.Varint(r.b)
	return cut(r, x, n)
}

// cut drops the n bytes of x.
func cut[T uint64 | int64](r *reader, x T, n int) T {
	if n <= 0 || r.failed {
		r.failed = true
		return 0
	}
	r.b = r.b[n:]
	return x
}

// count reads how many things follow, each of a byte at least.
func (r *reader) count() uint64 {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.failed = true
		return 0
	}
	return n
}

func (r *reader) float() float64 {
	if len(r.b) < 8 || r.failed {
		r.failed = true
		return 0
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(r.b))
	r.b = r.b[8:]
	return x
}
