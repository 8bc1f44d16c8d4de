package footprint

import (
	"fmt"
	"math"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/sched"
)

// Format names what is saved.
func (*Peaks) Format() string { return "footprint/1" }

// SaveJob appends the peak of job j, nothing if none was measured.
func (p *Peaks) SaveJob(j sched.JobID, b []byte) []byte {
	if int(j) >= len(p.jobs) || p.jobs[j].gb == 0 {
		return b
	}
	return memo.Bool(memo.Float(b, float64(p.jobs[j].gb)), p.jobs[j].settled)
}

// LoadJob takes what SaveJob wrote.
func (p *Peaks) LoadJob(j sched.JobID, b []byte) error {
	r := memo.NewReader(b)
	x := peak{gb: float32(r.Float()), settled: r.Bool()}
	r.Want(x.gb > 0, "a peak of %v GB, want more than none", x.gb)
	if err := r.End(); err != nil {
		return fmt.Errorf("footprint: memory of job %d: %w", j, err)
	}
	p.room(j)
	p.jobs[j] = x
	return nil
}

// SaveRest appends the peaks of kinds of jobs, the oldest first.
func (p *Peaks) SaveRest(b []byte) []byte {
	b = memo.Uint(b, uint64(len(p.order)))
	for _, k := range p.order {
		b = memo.Text(memo.Text(b, k.user), k.model)
		b = memo.Uint(memo.Uint(b, uint64(k.gpus)), uint64(k.batch))
		b = memo.Float(b, float64(p.kinds[k]))
	}
	return b
}

// LoadRest takes what SaveRest wrote.
func (p *Peaks) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	kinds, order := make(map[kind]float32), []kind(nil)
	for range r.Count(5) {
		k := kind{r.Text(), r.Text(), int32(r.Uint(math.MaxInt32)), int32(r.Uint(math.MaxInt32))}
		_, twice := kinds[k]
		r.Want(!twice, "a kind of jobs twice")
		kinds[k] = float32(r.Float())
		order = append(order, k)
	}
	r.Want(len(order) <= maxKinds, "%d kinds of jobs, want at most %d", len(order), maxKinds)
	if err := r.End(); err != nil {
		return fmt.Errorf("footprint: %w", err)
	}
	p.kinds, p.order = kinds, order
	return nil
}
