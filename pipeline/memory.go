package pipeline

import (
	"math"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/sched"
)

// A Pipeline's own memory is the keys of jobs, which asked for at another moment might round otherwise, and the order
// of its list, where ties keep it. All else is in its stages or follows from the View: indices and ledger are rebuilt.

// Format names what a Pipeline remembers; its stages have formats of their own.
func (p *Pipeline) Format() string { return "pipeline/1" }

// SaveJob appends the key of job j and until when it holds, if it has one, then what the stages remember of the job.
func (p *Pipeline) SaveJob(j sched.JobID, b []byte) []byte {
	known := int(j) < len(p.books.jobs) && p.books.jobs[j].in != away
	if b = memo.Bool(b, known); known {
		x := &p.books.jobs[j]
		b = memo.Float(memo.Float(memo.Int(b, x.key.Level), x.key.Value), x.key.Slope)
		b = memo.Int(memo.Int(b, x.key.Seq), int64(x.due))
	}
	return memory.AppendJob(b, j, p.s.memories())
}

// Changed appends the jobs whose keys were asked for, whose turns changed, or that are gone, then what the stages say.
func (p *Pipeline) Changed(dst []sched.JobID) (list []sched.JobID, known bool) {
	dst, before := p.changed.Changed(dst)
	list, known = memory.Changed(dst, p.s.memories())
	return list, known && before
}

// SaveRest appends the rest: whether and when a decision is due, whether the ledger is to be rebuilt first, when it
// asked to be woken, the revision keys were asked at, the list, then what the stages remember.
func (p *Pipeline) SaveRest(b []byte) []byte {
	// stale has keys asked for again at the next decision, whatever happens until then
	for _, is := range []bool{p.dirty, p.asked, p.stale} {
		b = memo.Bool(b, is)
	}
	b = memo.Int(memo.Uint(memo.Int(b, int64(p.wake)), p.revisions.seen), int64(p.protection.retry))
	list := p.ranks.list
	if !p.s.KeepOrder {
		list = nil
	}
	b = memo.Uint(b, uint64(len(list)))
	for _, id := range list {
		b = memo.Uint(b, uint64(id))
	}
	return memory.AppendRest(b, p.s.memories())
}

// LoadJob restores what SaveJob wrote. It is called before Resume.
func (p *Pipeline) LoadJob(j sched.JobID, b []byte) error {
	r := memo.NewReader(b)
	if r.Bool() {
		x := entry{key: sched.Key{Level: r.Int(math.MinInt64, math.MaxInt64), Value: r.Float(), Slope: r.Float(),
			Seq: r.Int(math.MinInt64, math.MaxInt64)}}
		x.due = sched.Time(r.Int(math.MinInt64, math.MaxInt64))
		if p.restored.keys == nil {
			p.restored.keys = make(map[sched.JobID]entry)
		}
		p.restored.keys[j] = x
	}
	return memory.ReadJob(r, j, p.s.memories())
}

// Resume takes over what the view shows after a Load, before the first Observe.
func (p *Pipeline) Resume(v *sched.View) { p.prime(v) }

// LoadRest restores what SaveRest wrote.
func (p *Pipeline) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	p.restored.is = true
	p.restored.dirty, p.asked, p.restored.stale = r.Bool(), r.Bool(), r.Bool()
	p.wake = sched.Time(r.Int(0, math.MaxInt64))
	p.revisions.seen = r.Uint(math.MaxUint64)
	p.protection.retry = sched.Time(r.Int(0, math.MaxInt64))
	for range r.Count(1) {
		p.restored.list = append(p.restored.list, sched.JobID(r.Uint(math.MaxInt32)))
	}
	return memory.ReadRest(r, p.s.memories())
}

// memories are the stages that remember something, in a fixed order.
func (s *Stages) memories() []sched.Memory {
	var ms []sched.Memory
	for _, stage := range s.deciding() {
		if m, ok := stage.(sched.Memory); ok {
			ms = append(ms, m)
		}
	}
	return ms
}
