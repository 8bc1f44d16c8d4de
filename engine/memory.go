package engine

import (
	"encoding/binary"
	"errors"

	"github.com/trainyard/trainyard/sched"
)

// A Pipeline's own memory is the order of its list, where ties keep it; all else is in its stages or follows from the
// View. Indices, keys and the ledger are rebuilt from there.

// SaveJob appends what the order remembers of job j.
func (p *Pipeline) SaveJob(j sched.JobID, b []byte) []byte {
	if p.turns == nil {
		return b
	}
	return p.turns.SaveJob(j, b)
}

// SaveRest appends the rest: whether a decision is due, the list, then what the order and the other stages remember.
func (p *Pipeline) SaveRest(b []byte) []byte {
	flag := byte(0)
	if p.dirty {
		flag = 1
	}
	b = append(b, flag)
	list := p.list
	if !p.s.KeepOrder {
		list = nil
	}
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, id := range list {
		b = binary.AppendUvarint(b, uint64(id))
	}
	for _, m := range p.memories() {
		part := m.SaveRest(nil)
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

var errMemory = errors.New("engine: memory of a pipeline is cut short")

// LoadJob restores what the order remembers of job j. It is called before the first Observe.
func (p *Pipeline) LoadJob(j sched.JobID, b []byte) error {
	if p.turns == nil {
		if len(b) != 0 {
			return errors.New("engine: memory for a system that remembers nothing by job")
		}
		return nil
	}
	return p.turns.LoadJob(j, b)
}

// LoadRest restores what SaveRest wrote.
func (p *Pipeline) LoadRest(b []byte) error {
	if len(b) == 0 {
		return errMemory
	}
	p.loadedDirty, b = b[0] == 1, b[1:]
	p.loaded = true
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
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return errMemory
		}
		if err := m.LoadRest(b[k : k+int(n)]); err != nil {
			return err
		}
		b = b[k+int(n):]
	}
	if len(b) != 0 {
		return errors.New("engine: memory of a pipeline is too long")
	}
	return nil
}

// memories are the stages that remember something, in a fixed order.
func (p *Pipeline) memories() []sched.Memory {
	var ms []sched.Memory
	for _, stage := range []any{p.s.Order, p.s.Place, p.s.Admit, p.s.Select} {
		if m, ok := stage.(sched.Memory); ok {
			ms = append(ms, m)
		}
	}
	return ms
}
