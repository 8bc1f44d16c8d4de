package engine

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/trainyard/trainyard/sched"
)

// A Pipeline's own memory is the keys of jobs, which asked for at another moment might round otherwise, and the order of
// its list, where ties keep it. All else is in its stages or follows from the View: indices and ledger are rebuilt.

// savedKey is the length of a key in a job's memory.
const savedKey = 36

// SaveJob appends the key of job j and until when it holds, if it has one, then what the order remembers of the job.
func (p *Pipeline) SaveJob(j sched.JobID, b []byte) []byte {
	if int(j) >= len(p.jobs) || p.jobs[j].in == away {
		b = append(b, 0)
	} else {
		x := &p.jobs[j]
		b = append(b, 1)
		b = binary.LittleEndian.AppendUint32(b, uint32(x.key.Level))
		for _, w := range []uint64{math.Float64bits(x.key.Value), math.Float64bits(x.key.Slope), uint64(x.key.Seq), uint64(x.due)} {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
	}
	for _, m := range p.memories() {
		b = appendPart(b, m.SaveJob(j, nil))
	}
	return b
}

// appendPart appends what one stage remembers, behind its length.
func appendPart(b, part []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// cutPart returns what one stage remembers, and what is behind it.
func cutPart(b []byte) (part, rest []byte, err error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return nil, nil, errMemory
	}
	return b[k : k+int(n)], b[k+int(n):], nil
}

// SaveRest appends the rest: whether and when a decision is due, whether the ledger is to be rebuilt first, when it asked to be woken, the revision keys were asked at, the list, then what the
// stages remember.
func (p *Pipeline) SaveRest(b []byte) []byte {
	flag := byte(0)
	if p.dirty {
		flag |= 1
	}
	if p.asked {
		flag |= 2
	}
	if p.stale { // by which keys are asked for anew at the next decision, whatever happens until then
		flag |= 4
	}
	b = append(b, flag)
	b = binary.AppendUvarint(b, uint64(p.wake))
	b = binary.AppendUvarint(b, p.rev)
	b = binary.AppendUvarint(b, uint64(p.retry))
	list := p.list
	if !p.s.KeepOrder {
		list = nil
	}
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, id := range list {
		b = binary.AppendUvarint(b, uint64(id))
	}
	for _, m := range p.memories() {
		b = appendPart(b, m.SaveRest(nil))
	}
	return b
}

var errMemory = errors.New("engine: memory of a pipeline is cut short")

// LoadJob restores what SaveJob wrote. It is called before Resume.
func (p *Pipeline) LoadJob(j sched.JobID, b []byte) error {
	if len(b) == 0 || b[0] > 1 || b[0] == 1 && len(b) < 1+savedKey {
		return errMemory
	}
	if b[0] == 1 {
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
		if p.loadedKeys == nil {
			p.loadedKeys = make(map[sched.JobID]entry)
		}
		p.loadedKeys[j] = entry{due: sched.Time(word(29)), key: sched.Key{Level: int32(binary.LittleEndian.Uint32(b[1:])),
			Value: math.Float64frombits(word(5)), Slope: math.Float64frombits(word(13)), Seq: int64(word(21))}}
		b = b[savedKey:]
	}
	b = b[1:]
	for _, m := range p.memories() {
		part, rest, err := cutPart(b)
		if err != nil {
			return err
		}
		if b = rest; len(part) == 0 {
			continue // nothing was remembered of the job
		}
		if err := m.LoadJob(j, part); err != nil {
			return err
		}
	}
	if len(b) != 0 {
		return errors.New("engine: memory of a job is too long")
	}
	return nil
}

// Resume takes over what the view shows after a Load, before the first Observe.
func (p *Pipeline) Resume(v *sched.View) { p.prime(v) }

// LoadRest restores what SaveRest wrote.
func (p *Pipeline) LoadRest(b []byte) error {
	if len(b) == 0 {
		return errMemory
	}
	p.loadedDirty, p.asked, p.loadedStale, b = b[0]&1 != 0, b[0]&2 != 0, b[0]&4 != 0, b[1:]
	p.loaded = true
	wake, k := binary.Uvarint(b)
	if k <= 0 {
		return errMemory
	}
	p.wake, b = sched.Time(wake), b[k:]
	rev, k := binary.Uvarint(b)
	if k <= 0 {
		return errMemory
	}
	p.rev, b = rev, b[k:]
	retry, k := binary.Uvarint(b)
	if k <= 0 {
		return errMemory
	}
	p.retry, b = sched.Time(retry), b[k:]
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)) {
		return errMemory
	}
	b = b[k:]
	for range n {
		id, k := binary.Uvarint(b)
		if k <= 0 {
			return errMemory
		}
		p.loadedList = append(p.loadedList, sched.JobID(id))
		b = b[k:]
	}
	for _, m := range p.memories() {
		part, rest, err := cutPart(b)
		if err != nil {
			return err
		}
		if err := m.LoadRest(part); err != nil {
			return err
		}
		b = rest
	}
	if len(b) != 0 {
		return errors.New("engine: memory of a pipeline is too long")
	}
	return nil
}

// memories are the stages that remember something, in a fixed order.
func (p *Pipeline) memories() []sched.Memory {
	var ms []sched.Memory
	for _, stage := range []any{p.s.Order, p.s.Place, p.s.Admit, p.s.Allocate} {
		if m, ok := stage.(sched.Memory); ok {
			ms = append(ms, m)
		}
	}
	return ms
}
