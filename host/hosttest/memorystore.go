package hosttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/sched"
)

// Disk is what outlives a host: its stores write to it.
type Disk struct {
	// States: a start goes on from the state of the last batch, as on Kubernetes; false: from the log, which is
	// replayed.
	States bool

	mu     sync.Mutex
	epoch  int
	header eventlog.Header
	renew  string
	lines  [][]byte
	from   uint64 // the batch of the last Renewed
	state  []byte
	loads  int
}

// NewDisk returns a disk with an empty log.
func NewDisk(h eventlog.Header) *Disk { return &Disk{header: h} }

// Change has another system go on from the next start.
func (d *Disk) Change(change func(h *eventlog.Header), why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.header)
	d.renew = why
}

// Lines returns the log so far, one event each.
func (d *Disk) Lines() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]string, len(d.lines))
	for i, line := range d.lines {
		list[i] = string(line)
	}
	return list
}

// Loads returns how often it was read.
func (d *Disk) Loads() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.loads
}

// ErrFenced says that a later store has the disk.
var ErrFenced = errors.New("a later host has the disk")

// Moment is when a store may fail.
type Moment int

// Moments.
const (
	AtLoad Moment = iota
	Before        // EndBatch, with nothing written
	After         // EndBatch, with all written
)

// Store writes batches to a disk. The last one that was loaded has it.
type Store struct {
	*Disk

	// Fail returns the error of a moment; nil: none ever. It is called by the engine's goroutine.
	Fail func(m Moment, batch uint64) error

	mine  int
	batch uint64
	lines []byte
	ends  []int
	v     *sched.View
	dec   sched.Decider
}

var (
	_ host.Store   = (*Store)(nil)
	_ host.Starter = (*Store)(nil)
	_ host.Pager   = (*Store)(nil)
)

// NewStore returns a store on a disk.
func NewStore(d *Disk) *Store { return &Store{Disk: d} }

func (s *Store) fail(m Moment) error {
	if s.Fail == nil {
		return nil
	}
	return s.Fail(m, s.batch)
}

// Load takes the disk and returns what it has.
func (s *Store) Load(context.Context) (host.Past, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	if err := s.fail(AtLoad); err != nil {
		return host.Past{}, err
	}
	s.epoch++
	s.mine = s.epoch
	past := host.Past{Header: s.header, Renew: s.renew}
	if !s.States {
		past.Log = &host.Log{Records: s.records(append([][]byte(nil), s.Disk.lines...)), From: s.from}
		return past, nil
	}
	past.State = new(eventlog.Beginning)
	if s.state != nil {
		h := eventlog.Header{State: s.state}
		b, err := h.Beginning()
		if err != nil {
			return past, err
		}
		past.State = b
		if s.renew != "" {
			b.Memory = nil
		}
	}
	past.State.View.Types = s.header.Types
	return past, nil
}

// records reads lines.
func (s *Store) records(lines [][]byte) func(yield func(*eventlog.Record, error) bool) {
	h := s.header
	return func(yield func(*eventlog.Record, error) bool) {
		text := string(eventlog.AppendHeader(nil, h)) + "\n"
		for _, line := range lines {
			text += string(line) + "\n"
		}
		r, err := eventlog.NewReader(strings.NewReader(text), "memory")
		if err != nil {
			yield(nil, err)
			return
		}
		r.Records()(yield)
	}
}

// Start goes on after the last batch.
func (s *Store) Start(start *host.Start) error {
	s.batch, s.v, s.dec = start.Batch, start.View, start.Decider
	s.lines, s.ends = nil, nil
	return nil
}

// BeginBatch counts the batch.
func (s *Store) BeginBatch() { s.batch++ }

// Log takes an event.
func (s *Store) Log(_ *sched.View, e *sched.Event) {
	s.lines = eventlog.AppendEvent(s.lines, s.batch, e)
	s.ends = append(s.ends, len(s.lines))
}

// EndBatch writes the batch, whole or not at all.
func (s *Store) EndBatch() error {
	if err := s.fail(Before); err != nil {
		return err
	}
	if err := s.write(); err != nil {
		return err
	}
	return s.fail(After)
}

func (s *Store) write() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mine != s.epoch {
		return fmt.Errorf("%w: %d, this is %d", ErrFenced, s.epoch, s.mine)
	}
	from := 0
	for _, end := range s.ends {
		line := bytes.Clone(s.lines[from:end])
		if s.Disk.lines = append(s.Disk.lines, line); bytes.Contains(line, []byte(eventlog.RenewedMark)) {
			s.from = s.batch
		}
		from = end
	}
	s.lines, s.ends, s.renew = s.lines[:0], s.ends[:0], ""
	if !s.States {
		return nil
	}
	m := memory.Save(s.v, s.dec)
	b := eventlog.Beginning{View: *s.v, Memory: &m}
	packed, err := b.Pack()
	s.state = packed
	return err
}

// Page returns lines of the log.
func (s *Store) Page(seq uint64, n int) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := min(int(seq)-1, len(s.Disk.lines))
	return s.Disk.lines[from:min(from+n, len(s.Disk.lines))], nil
}

// Due is never.
func (s *Store) Due() sched.Time { return sched.Never }

// Close does nothing: the disk stays.
func (s *Store) Close() error { return nil }
