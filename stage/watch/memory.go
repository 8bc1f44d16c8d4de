package watch

import (
	"fmt"
	"math"
	"time"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/model/straggler"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// Format names what is saved.
func (*Stragglers) Format() string { return "stragglers/1" }

// SaveJob appends what job j said last of its steps and what the detector remembers of it.
func (s *Stragglers) SaveJob(j sched.JobID, b []byte) []byte {
	if s.detector == nil {
		return b
	}
	of := s.detector.SaveJob(j, nil)
	p := progress{}
	if int(j) < len(s.steps) {
		p = s.steps[j]
	}
	if len(of) == 0 && p == (progress{}) {
		return b
	}
	return append(memo.Int(memo.Float(memo.Int(b, int64(p.attempt)), p.steps), int64(p.at)), of...)
}

// LoadJob takes what SaveJob wrote.
func (s *Stragglers) LoadJob(j sched.JobID, b []byte) error {
	r := memo.NewReader(b)
	p := progress{int32(r.Int(math.MinInt32, math.MaxInt32)), r.Float(), sched.Time(r.Int(0, math.MaxInt64))}
	r.Want(p.steps >= 0, "%v steps, want >= 0", p.steps)
	if err := r.Err(); err != nil {
		return fmt.Errorf("watch: memory of a job: %w", err)
	}
	if s.detector == nil {
		s.detector, _ = straggler.New(straggler.Params{})
	}
	if of := r.Rest(); len(of) > 0 {
		if err := s.detector.LoadJob(j, of); err != nil {
			return err
		}
	}
	for int(j) >= len(s.steps) {
		s.steps = append(s.steps, progress{})
	}
	s.steps[j] = p
	return nil
}

// SaveRest appends the revision, the GPUs, the machines and what the detector remembers in addition to jobs.
func (s *Stragglers) SaveRest(b []byte) []byte {
	b = memo.Uint(memo.Int(memo.Uint(b, s.revision), int64(s.fading)), uint64(len(s.gpus)))
	for i := range s.gpus {
		x := &s.gpus[i]
		for _, n := range [...]int64{int64(x.reported), int64(x.until), int64(x.term), int64(x.user), int64(x.lifted),
			int64(x.good)} {
			b = memo.Int(b, n)
		}
		b = memo.Text(memo.Bool(memo.Bool(b, x.ours), x.trial), x.tracker.Save(nil))
	}
	b = memo.Uint(b, uint64(len(s.odd)))
	for _, g := range s.odd {
		b = memo.Uint(b, uint64(g))
	}
	b = memo.Uint(b, uint64(len(s.names)))
	for _, name := range s.names {
		b = memo.Text(b, name)
	}
	if s.detector == nil {
		return b
	}
	return s.detector.SaveRest(b)
}

// LoadRest takes what SaveRest wrote, and has the factors revised. On error all stays as it was.
func (s *Stragglers) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	next := Stragglers{revision: r.Uint(math.MaxUint64), fading: sched.Time(r.Int(0, math.MaxInt64))}
	for range r.Uint(variability.MaxGPUs) {
		if r.Err() != nil {
			break
		}
		next.gpus = append(next.gpus, loadGPU(r))
	}
	for range r.Count(1) {
		g := sched.GPUID(r.Uint(math.MaxInt32))
		if r.Want(int(g) < len(next.gpus) && !next.gpus[g].isOdd, "odd GPU %d is not there, or twice",
			g); r.Err() != nil {
			break
		}
		next.gpus[g].isOdd = true
		next.odd = append(next.odd, g)
	}
	for range r.Count(1) {
		next.names = append(next.names, r.Text())
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("watch: memory of GPUs: %w", err)
	}
	if s.detector == nil {
		s.detector, _ = straggler.New(straggler.Params{})
	}
	if r.Len() > 0 {
		if err := s.detector.LoadRest(r.Rest()); err != nil {
			return err
		}
	}
	s.gpus, s.odd, s.names, s.revision, s.fading = next.gpus, next.odd, next.names, next.revision, next.fading
	s.revise()
	return nil
}

// loadGPU reads what SaveRest wrote of one GPU.
func loadGPU(r *memo.Reader) watched {
	x := watched{reported: int(r.Int(-maxSteps, maxSteps)), until: sched.Time(r.Int(0, math.MaxInt64)),
		term: time.Duration(r.Int(0, int64(lastTerm))),
		user: sched.JobID(r.Int(sched.None, math.MaxInt32)), lifted: sched.Time(r.Int(0, math.MaxInt64)),
		good: int8(r.Int(0, 2)), ours: r.Bool(), trial: r.Bool()}
	x.tracker, _ = variability.NewTracker(1, 1, tracking)
	if saved := r.Bytes(); r.Err() == nil {
		err := x.tracker.Load(saved)
		r.Want(err == nil, "%v", err)
	}
	return x
}

// maxSteps is more than any factor in variability.MinScore..MaxScore comes to.
const maxSteps = 1 << 10
