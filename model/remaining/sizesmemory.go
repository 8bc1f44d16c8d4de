package remaining

import (
	"fmt"
	"math"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/sched"
)

// Format names what Save writes.
func (*Sizes) Format() string { return "sizes/1" }

// SaveJob appends what job j says of its steps, nothing if it says nothing.
func (s *Sizes) SaveJob(j sched.JobID, b []byte) []byte { return s.said.SaveJob(j, b) }

// LoadJob takes what SaveJob wrote.
func (s *Sizes) LoadJob(j sched.JobID, b []byte) error { return s.said.LoadJob(j, b) }

// SaveRest appends what jobs say of their steps, the laws and what they are made of, those of kinds in order of age.
func (s *Sizes) SaveRest(b []byte) []byte {
	b = memo.Part(b, s.said.Format(), s.said.SaveRest(nil))
	b = memo.Uint(memo.Bool(b, s.met), uint64(s.fresh))
	b = memo.Uint(memo.Int(b, int64(s.made)), s.number)
	b = s.all.save(b)
	b = memo.Uint(b, uint64(len(s.order)))
	for _, k := range s.order {
		b = s.kinds[k].save(memo.Text(append(b, byte(k.level)), k.name))
	}
	return b
}

func (l *law) save(b []byte) []byte {
	b = memo.Uint(memo.Uint(b, uint64(l.seen)), uint64(l.count))
	for _, x := range l.ended {
		b = memo.Float(b, x)
	}
	b = memo.Uint(b, uint64(len(l.running)))
	for _, x := range l.running {
		b = memo.Float(b, x)
	}
	return b
}

// LoadRest takes what SaveRest wrote. On error all stays as it was.
func (s *Sizes) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	next := NewSizes()
	next.said.whole = s.said.whole // which LoadJob gave it
	said, _ := r.Part(next.said.Format())
	if r.Err() == nil {
		if err := next.said.LoadRest(said); err != nil {
			return err
		}
	}
	next.met, next.fresh = r.Bool(), int(r.Uint(mostFresh))
	next.made, next.number = sched.Time(r.Int(0, math.MaxInt64)), r.Uint(math.MaxUint64)
	next.all = loadLaw(r)
	for range r.Uint(mostKinds) {
		k := kind{int(r.Byte(levels - 1)), r.Text()}
		l := loadLaw(r)
		r.Want(k.name != "" && next.kinds[k] == nil, "kind %.80q without a name, or twice", k.name)
		if r.Err() != nil {
			break
		}
		next.kinds[k], next.order = &l, append(next.order, k)
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("remaining: memory of sizes: %w", err)
	}
	*s = *next
	return nil
}

func loadLaw(r *memo.Reader) (l law) {
	l.seen, l.count = int64(r.Uint(math.MaxInt64)), int64(r.Uint(math.MaxInt64))
	r.Want(l.count <= l.seen && l.seen-l.count <= mostFresh, "%d sizes, %d of them in the law", l.seen, l.count)
	l.ended = loadSizes(r, min(l.seen, kept))
	l.running = loadSizes(r, int64(r.Count(8)))
	return l
}

func loadSizes(r *memo.Reader, n int64) (list []float64) {
	for range n {
		x := r.Float()
		if r.Want(x > 0 && !math.IsInf(x, 1), "%v, want > 0 and finite", x); r.Err() != nil {
			break
		}
		list = append(list, x)
	}
	return list
}
