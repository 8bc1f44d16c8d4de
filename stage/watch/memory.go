package watch

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/trainyard/trainyard/model/straggler"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

var errMemory = errors.New("watch: memory is cut short, too long or makes no sense")

// progressBytes is the length of what a job said last.
const progressBytes = 4 + 8 + 8

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
	b = binary.LittleEndian.AppendUint32(b, uint32(p.attempt))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(p.steps))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.at))
	return append(b, of...)
}

// LoadJob takes what SaveJob wrote.
func (s *Stragglers) LoadJob(j sched.JobID, b []byte) error {
	if len(b) < progressBytes {
		return errMemory
	}
	p := progress{int32(binary.LittleEndian.Uint32(b)), math.Float64frombits(binary.LittleEndian.Uint64(b[4:])), sched.Time(binary.LittleEndian.Uint64(b[12:]))}
	if !(p.steps >= 0) || p.at < 0 {
		return errMemory
	}
	if s.detector == nil {
		s.detector, _ = straggler.New(straggler.Params{})
	}
	if of := b[progressBytes:]; len(of) > 0 {
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

// SaveRest appends the revision, the GPUs, the machines and what the detector remembers beside jobs.
func (s *Stragglers) SaveRest(b []byte) []byte {
	b = binary.AppendUvarint(b, s.revision)
	b = binary.AppendVarint(b, int64(s.fading))
	b = binary.AppendUvarint(b, uint64(len(s.gpus)))
	for i := range s.gpus {
		x := &s.gpus[i]
		for _, n := range [...]int64{int64(x.told), int64(x.until), int64(x.term), flag(x.ours), int64(x.user), int64(x.lifted), flag(x.trial), int64(x.good)} {
			b = binary.AppendVarint(b, n)
		}
		b = appendPart(b, x.tracker.Save(nil))
	}
	b = binary.AppendUvarint(b, uint64(len(s.odd)))
	for _, g := range s.odd {
		b = binary.AppendUvarint(b, uint64(g))
	}
	b = binary.AppendUvarint(b, uint64(len(s.names)))
	for _, name := range s.names {
		b = appendPart(b, []byte(name))
	}
	if s.detector == nil {
		return b
	}
	return s.detector.SaveRest(b)
}

func flag(x bool) int64 {
	if x {
		return 1
	}
	return 0
}

func appendPart(b, part []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// LoadRest takes what SaveRest wrote, and has the factors revised. On error all stays as it was.
func (s *Stragglers) LoadRest(b []byte) error {
	r := reader{b: b}
	next := Stragglers{revision: r.uint(math.MaxUint64), fading: sched.Time(r.int(0, math.MaxInt64))}
	for range r.uint(variability.MaxGPUs) {
		if r.bad {
			break
		}
		t, _ := variability.NewTracker(1, 1, tracking)
		x := watched{tracker: t, told: int(r.int(-maxSteps, maxSteps)), until: sched.Time(r.int(0, math.MaxInt64)),
			term: time.Duration(r.int(0, int64(lastTerm))), ours: r.int(0, 1) == 1,
			user: sched.JobID(r.int(sched.None, math.MaxInt32)), lifted: sched.Time(r.int(0, math.MaxInt64)), trial: r.int(0, 1) == 1, good: int8(r.int(0, 2))}
		if part := r.part(); r.bad || t.Load(part) != nil {
			return errMemory
		}
		next.gpus = append(next.gpus, x)
	}
	for range r.uint(uint64(len(next.gpus))) {
		g := sched.GPUID(r.uint(uint64(len(next.gpus))))
		if r.bad || int(g) >= len(next.gpus) || next.gpus[g].isOdd {
			return errMemory
		}
		next.gpus[g].isOdd = true
		next.odd = append(next.odd, g)
	}
	for range r.uint(uint64(len(r.b))) {
		next.names = append(next.names, string(r.part()))
	}
	if r.bad {
		return errMemory
	}
	if s.detector == nil {
		s.detector, _ = straggler.New(straggler.Params{})
	}
	if len(r.b) > 0 {
		if err := s.detector.LoadRest(r.b); err != nil {
			return err
		}
	}
	s.gpus, s.odd, s.names, s.revision, s.fading = next.gpus, next.odd, next.names, next.revision, next.fading
	s.revise()
	return nil
}

// maxSteps is more than any factor in variability.MinScore..MaxScore comes to.
const maxSteps = 1 << 10

// reader takes numbers off b; once something is wrong it gives zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uint(most uint64) uint64 {
	x, n := binary.Uvarint(r.b)
	if r.bad || n <= 0 || x > most {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *reader) int(low, high int64) int64 {
	x, n := binary.Varint(r.b)
	if r.bad || n <= 0 || x < low || x > high {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *reader) part() []byte {
	n := int(r.uint(uint64(len(r.b))))
	if r.bad || n > len(r.b) {
		r.bad = true
		return nil
	}
	part := r.b[:n]
	r.b = r.b[n:]
	return part
}
