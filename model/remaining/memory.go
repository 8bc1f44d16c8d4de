package remaining

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/sched"
)

// format is the first byte that SaveRest writes.
const format = 1

// Format names what Save writes.
func (*Estimator) Format() string { return "remaining/1" }

// SaveJob appends how much work the steps of job j say it is, nothing if they do not.
func (e *Estimator) SaveJob(j sched.JobID, b []byte) []byte {
	if int(j) >= len(e.whole) || e.whole[j] == 0 {
		return b
	}
	return memo.Uint(b, uint64(e.whole[j]))
}

// LoadJob takes what SaveJob wrote.
func (e *Estimator) LoadJob(j sched.JobID, b []byte) error {
	r := memo.NewReader(b)
	whole := r.Uint(uint64(longest))
	if err := r.End(); err != nil {
		return fmt.Errorf("remaining: memory of job %d: %w", j, err)
	}
	for int(j) >= len(e.whole) {
		e.whole = append(e.whole, 0)
	}
	e.whole[j] = time.Duration(whole)
	return nil
}

// SaveRest appends whether it has met the jobs before it, the revision, the sample of all jobs, then those of the
// classes in order.
func (e *Estimator) SaveRest(b []byte) []byte {
	b = memo.Uint(memo.Bool(append(b, format), e.met), e.revision)
	b = e.all.save(b)
	b = memo.Uint(b, uint64(len(e.classes)))
	order := func(k, o class) int { return cmp.Or(cmp.Compare(k.by, o.by), cmp.Compare(k.name, o.name)) }
	for _, k := range slices.SortedFunc(maps.Keys(e.classes), order) {
		b = e.classes[k].save(memo.Text(append(b, byte(k.by)), k.name))
	}
	return b
}

func (s *sample) save(b []byte) []byte {
	b = memo.Uint(memo.Uint(b, uint64(s.reported)), uint64(s.last))
	return s.ratios.save(s.works.save(b))
}

// save appends how many were observed, and those that are kept as they lie in the ring.
func (w *window) save(b []byte) []byte {
	b = memo.Uint(b, uint64(w.seen))
	for _, x := range w.ring {
		b = memo.Float(b, x)
	}
	return b
}

// LoadRest takes what SaveRest wrote. On error all stays as it was.
func (e *Estimator) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	found := r.Byte(math.MaxUint8)
	r.Want(found == format, "of format %d, want %d", found, format)
	met, revision, all := r.Bool(), r.Uint(math.MaxUint64), loadSample(r)
	classes := make(map[class]*sample)
	for range r.Uint(MaxClasses) {
		k := class{by: by(r.Byte(byte(byUser))), name: r.Text()}
		s := loadSample(r)
		r.Want(k.by != byAll && k.name != "" && classes[k] == nil, "class %.80q without a name, or twice", k.name)
		if r.Err() != nil {
			break
		}
		classes[k] = &s
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("remaining: memory: %w", err)
	}
	e.met, e.revision, e.all, e.classes = met, revision, all, classes
	return nil
}

func loadSample(r *memo.Reader) (s sample) {
	s.reported, s.last = int64(r.Uint(math.MaxInt64/2)), int64(r.Uint(math.MaxInt64))
	s.works, s.ratios = loadWindow(r), loadWindow(r)
	r.Want(s.reported <= s.works.seen && s.ratios.seen <= s.works.seen, "%d said and %d ratios of %d jobs", s.reported,
		s.ratios.seen, s.works.seen)
	return s
}

func loadWindow(r *memo.Reader) (w window) {
	w.seen = int64(r.Uint(math.MaxInt64))
	for range min(w.seen, Window) {
		x := r.Float()
		if r.Want(x > 0 && !math.IsInf(x, 1), "%v, want > 0 and finite", x); r.Err() != nil {
			break
		}
		w.ring = append(w.ring, x)
	}
	return w
}
