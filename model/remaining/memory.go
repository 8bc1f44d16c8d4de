package remaining

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// format is the first byte that SaveRest writes.
const format = 1

var errMemory = errors.New("remaining: memory is cut short, too long or out of range")

// Format names what Save writes.
func (*Estimator) Format() string { return "remaining/1" }

// SaveJob appends how much work the steps of job j say it is, nothing if they do not.
func (e *Estimator) SaveJob(j sched.JobID, b []byte) []byte {
	if int(j) >= len(e.whole) || e.whole[j] == 0 {
		return b
	}
	return binary.AppendUvarint(b, uint64(e.whole[j]))
}

// LoadJob takes what SaveJob wrote.
func (e *Estimator) LoadJob(j sched.JobID, b []byte) error {
	whole, n := binary.Uvarint(b)
	if n != len(b) || n == 0 || whole > uint64(longest) {
		return errMemory
	}
	for int(j) >= len(e.whole) {
		e.whole = append(e.whole, 0)
	}
	e.whole[j] = time.Duration(whole)
	return nil
}

// SaveRest appends whether it has met the jobs before it, the revision, the sample of all jobs, then those of the classes in order.
func (e *Estimator) SaveRest(b []byte) []byte {
	met := byte(0)
	if e.met {
		met = 1
	}
	b = binary.AppendUvarint(append(b, format, met), e.revision)
	b = e.all.save(b)
	b = binary.AppendUvarint(b, uint64(len(e.classes)))
	order := func(k, o class) int { return cmp.Or(cmp.Compare(k.by, o.by), cmp.Compare(k.name, o.name)) }
	for _, k := range slices.SortedFunc(maps.Keys(e.classes), order) {
		b = binary.AppendUvarint(append(b, byte(k.by)), uint64(len(k.name)))
		b = e.classes[k].save(append(b, k.name...))
	}
	return b
}

func (s *sample) save(b []byte) []byte {
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(s.told)), uint64(s.last))
	return s.ratios.save(s.works.save(b))
}

// save appends how many were observed, and those that are kept as they lie in the ring.
func (w *window) save(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(w.seen))
	for _, x := range w.ring {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// LoadRest takes what SaveRest wrote. On error all stays as it was.
func (e *Estimator) LoadRest(b []byte) error {
	if len(b) == 0 || b[0] != format {
		return errMemory
	}
	r := reader{b: b[1:]}
	met, revision, all := r.number(1), r.number(math.MaxUint64), r.sample()
	classes := make(map[class]*sample)
	for range r.number(MaxClasses) {
		k := class{by: by(r.byte())}
		k.name = string(r.take(int(r.number(uint64(len(r.b))))))
		s := r.sample()
		if r.bad = r.bad || k.by == byAll || k.by > byUser || k.name == "" || classes[k] != nil; r.bad {
			break
		}
		classes[k] = &s
	}
	if r.bad || len(r.b) > 0 {
		return errMemory
	}
	e.met, e.revision, e.all, e.classes = met == 1, revision, all, classes
	return nil
}

// reader cuts numbers off what was saved; once something is wrong it gives zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) number(most uint64) uint64 {
	x, n := binary.Uvarint(r.b)
	if r.bad = r.bad || n <= 0 || x > most; r.bad {
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *reader) take(n int) []byte {
	if r.bad = r.bad || n > len(r.b); r.bad {
		return nil
	}
	x := r.b[:n]
	r.b = r.b[n:]
	return x
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) sample() (s sample) {
	s.told, s.last = int64(r.number(math.MaxInt64/2)), int64(r.number(math.MaxInt64))
	s.works, s.ratios = r.window(), r.window()
	r.bad = r.bad || s.told > s.works.seen || s.ratios.seen > s.works.seen
	return s
}

func (r *reader) window() (w window) {
	w.seen = int64(r.number(math.MaxInt64))
	for range min(w.seen, Window) {
		bits := r.take(8)
		if r.bad {
			return w
		}
		x := math.Float64frombits(binary.LittleEndian.Uint64(bits))
		r.bad = !(x > 0) || math.IsInf(x, 1)
		w.ring = append(w.ring, x)
	}
	return w
}
