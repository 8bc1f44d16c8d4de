package share

import (
	"fmt"
	"math"
	"time"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/sched"
)

var (
	_ sched.Changer = (*Core)(nil)
	_ sched.Changer = (*Company)(nil)
)

// Changed appends the jobs of which the learner remembers something else.
func (d *Core) Changed(dst []sched.JobID) (list []sched.JobID, known bool) {
	return d.Know.Learner.Changed(dst)
}

// Changed appends the jobs that trials changed something for, then what the learner says.
func (d *Company) Changed(dst []sched.JobID) (list []sched.JobID, known bool) {
	dst, known = d.changed.Changed(dst)
	list, learner := d.Core.Changed(dst)
	return list, known && learner
}

// SaveJob appends what is remembered of job j, then what the learner does.
func (d *Company) SaveJob(j sched.JobID, b []byte) []byte {
	if int(j) >= len(d.jobs) {
		return b
	}
	m := &d.jobs[j]
	b = memo.Bool(memo.Bool(b, m.whole), m.risk)
	for _, t := range []int64{int64(m.from), int64(m.until), int64(m.begin), int64(m.took), int64(m.edge)} {
		b = memo.Int(b, t)
	}
	b = memo.Uint(b, uint64(len(m.tried)))
	for _, set := range m.tried {
		b = memo.Uint(b, uint64(len(set)))
		for _, o := range set {
			b = memo.Uint(b, uint64(o))
		}
	}
	return d.Know.Learner.SaveJob(j, b)
}

// LoadJob takes what SaveJob wrote; jobs come in the order of their numbers.
func (d *Company) LoadJob(j sched.JobID, b []byte) error {
	r := memo.NewReader(b)
	m := known{whole: r.Bool(), risk: r.Bool()}
	for _, t := range []*sched.Time{&m.from, &m.until, &m.begin} {
		*t = sched.Time(r.Int(math.MinInt64, math.MaxInt64))
	}
	m.took, m.edge = time.Duration(r.Int(math.MinInt64, math.MaxInt64)), sched.Time(r.Int(math.MinInt64, math.MaxInt64))
	for range r.Count(1) {
		var set []sched.JobID
		for range r.Count(1) {
			set = append(set, sched.JobID(r.Uint(math.MaxInt32)))
		}
		m.tried = append(m.tried, set)
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("eaco: memory of job %d: %w", j, err)
	}
	for len(d.jobs) <= int(j) {
		d.jobs = append(d.jobs, newKnown())
	}
	d.jobs[j] = m
	return d.Know.Learner.LoadJob(j, r.Rest())
}

// SaveRest appends whether the queue is to be looked at, what was measured of GPUs, then what the learner knows.
func (d *Core) SaveRest(b []byte) []byte {
	b = memo.Bool(b, d.Dirty)
	b = memo.Uint(b, uint64(len(d.seen)))
	for i := range d.seen {
		s := &d.seen[i]
		b = memo.Float(memo.Float(memo.Int(memo.Int(b, int64(s.since)), int64(s.number)), s.use), s.memGB)
	}
	return d.Know.Learner.SaveRest(b)
}

// LoadRest takes what SaveRest wrote.
func (d *Core) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	d.Dirty = r.Bool()
	d.loaded = d.loaded[:0]
	for range r.Count(18) {
		d.loaded = append(d.loaded, seen{since: sched.Time(r.Int(math.MinInt64, math.MaxInt64)),
			number: int32(r.Int(0, math.MaxInt32)), use: r.Float(), memGB: r.Float()})
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("eaco: memory of GPUs: %w", err)
	}
	return d.Know.Learner.LoadRest(r.Rest())
}
