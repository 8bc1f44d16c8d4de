package allocate

import (
	"fmt"
	"math"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/model/price/step"
	"github.com/trainyard/trainyard/sched"
)

var (
	_ sched.Memory  = (*Clear)(nil)
	_ sched.Changer = (*Clear)(nil)
)

// said is what was remembered of jobs when it was asked last who changed.
type said struct {
	memory []jobMemory // by job
	asked  bool
}

// Changed appends the jobs of which something else is remembered. To compare all is cheaper than to save one.
func (a *Clear) Changed(dst []sched.JobID) (list []sched.JobID, known bool) {
	known, a.said.asked = a.said.asked, true
	for j, m := range a.memory {
		if j >= len(a.said.memory) {
			a.said.memory = append(a.said.memory, jobMemory{})
		}
		if was := &a.said.memory[j]; *was != m {
			*was = m
			dst = append(dst, sched.JobID(j))
		}
	}
	return dst, known
}

// Format names what is saved.
func (*Clear) Format() string { return "clear/1" }

// SaveJob appends the reference of job j, since when it starves and when it changed; nothing if there is none of them.
func (a *Clear) SaveJob(j sched.JobID, b []byte) []byte {
	if int(j) >= len(a.memory) || a.memory[j] == (jobMemory{}) {
		return b
	}
	m := &a.memory[j]
	return memo.Int(memo.Int(memo.Int(memo.Float(b, m.reference), int64(m.starved)), int64(m.kept)), int64(m.changed))
}

// LoadJob takes what SaveJob wrote.
func (a *Clear) LoadJob(j sched.JobID, b []byte) error {
	r := memo.NewReader(b)
	m := jobMemory{reference: r.Float(), starved: sched.Time(r.Int(0, math.MaxInt64)),
		kept: sched.Time(r.Int(0, math.MaxInt64)), changed: sched.Time(r.Int(0, math.MaxInt64))}
	r.Want(m.reference >= 0 && !math.IsInf(m.reference, 1), "work %v, want >= 0 and finite", m.reference)
	if err := r.End(); err != nil {
		return fmt.Errorf("allocate: memory of job %d: %w", j, err)
	}
	for int(j) >= len(a.memory) {
		a.memory = append(a.memory, jobMemory{})
	}
	a.memory[j] = m
	return nil
}

// SaveRest appends the level of the horizon and the arrivals that make the load; where GPUs are shared, the prices by
// which joins are weighed as well.
func (a *Clear) SaveRest(b []byte) []byte {
	x := &a.backlog
	b = memo.Int(memo.Int(memo.Uint(b, uint64(x.level)), int64(x.moved)), int64(x.started))
	b = memo.Uint(b, uint64(len(x.lately)))
	for _, l := range x.lately {
		b = memo.Float(memo.Int(b, int64(l.at)), l.gpuSeconds)
	}
	if !a.Shares {
		return b
	}
	b = memo.Uint(memo.Float(b, a.horizon), uint64(len(a.prices)))
	for _, price := range a.prices {
		b = memo.Float(b, price)
	}
	return b
}

// LoadRest takes what SaveRest wrote. On error all stays as it was.
func (a *Clear) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	x := backlog{level: int(r.Uint(uint64(len(step.Levels) - 1))), moved: sched.Time(r.Int(0, math.MaxInt64)),
		started: sched.Time(r.Int(0, math.MaxInt64))}
	for range r.Count(9) {
		l := arrival{sched.Time(r.Int(math.MinInt64, math.MaxInt64)), r.Float()}
		if r.Want(l.gpuSeconds >= 0, "an arrival of %v GPU-seconds", l.gpuSeconds); r.Err() != nil {
			break
		}
		x.lately = append(x.lately, l)
	}
	horizon, prices := 0.0, []float64(nil)
	if a.Shares {
		horizon = r.Float()
		for range r.Count(8) {
			prices = append(prices, r.Float())
		}
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("allocate: memory of the backlog: %w", err)
	}
	a.backlog, a.horizon, a.prices = x, horizon, prices
	return nil
}
