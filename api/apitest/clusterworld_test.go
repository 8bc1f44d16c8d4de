package apitest_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
)

// memoryStore keeps the latest lines of a log, in memory.
type memoryStore struct {
	header eventlog.Header

	mu      sync.Mutex
	lines   [][]byte
	from    uint64 // number of the first of them
	pending [][]byte
	batch   uint64
}

var (
	_ host.Store = (*memoryStore)(nil)
	_ host.Pager = (*memoryStore)(nil)
)

func newMemoryStore(h eventlog.Header) *memoryStore { return &memoryStore{header: h, from: 1} }

// Load returns that nothing has happened.
func (s *memoryStore) Load(context.Context) (host.Past, error) {
	return host.Past{Header: s.header, Log: &host.Log{Records: func(func(*eventlog.Record, error) bool) {}}}, nil
}

func (s *memoryStore) BeginBatch() { s.batch++ }

func (s *memoryStore) Log(_ *sched.View, e *sched.Event) {
	s.pending = append(s.pending, bytes.Clone(eventlog.AppendEvent(nil, s.batch, e)))
}

func (s *memoryStore) EndBatch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, s.pending...)
	s.pending = nil
	if over := len(s.lines) - keptEvents; over > 0 {
		s.lines = s.lines[over:]
		s.from += uint64(over)
	}
	return nil
}

func (s *memoryStore) Due() sched.Time { return sched.Never }
func (s *memoryStore) Close() error    { return nil }

func (s *memoryStore) first() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.from
}

// Page returns lines from the event numbered seq on.
func (s *memoryStore) Page(seq uint64, n int) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq < s.from {
		return nil, fmt.Errorf("event %d is no longer kept", seq)
	}
	lines := s.lines[min(seq-s.from, uint64(len(s.lines))):]
	return lines[:min(n, len(lines))], nil
}

// fakeDriver has 500 nodes on which attempts start at once and run until they are stopped, but for those of jobs
// called done.
type fakeDriver struct {
	origin time.Time
	view   *sched.View
	came   chan struct{} // an event came

	mu     sync.Mutex
	events []sched.Event
	last   sched.Time
}

var _ host.Driver = (*fakeDriver)(nil)

func newFakeDriver(origin string) (*fakeDriver, error) {
	at, err := time.Parse(time.RFC3339Nano, origin)
	return &fakeDriver{origin: at, came: make(chan struct{}, 1)}, err
}

// Close has nothing to let go of.
func (d *fakeDriver) Close() {}

// Now never falls.
func (d *fakeDriver) Now() sched.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = max(d.last, d.view.Now, sched.Time(time.Since(d.origin)))
	return d.last
}

// Sync reports the nodes.
func (d *fakeDriver) Sync(_ context.Context, v *sched.View) ([]sched.Event, error) {
	d.view = v
	events := make([]sched.Event, clusterNodes)
	for i := range events {
		spec := &sched.NodeSpec{Name: fmt.Sprintf("node-%03d", i), GPUs: nodeGPUs, Rack: int32(1 + i/20),
			Pool: sched.PoolID(sched.None)}
		for g := range nodeGPUs {
			spec.Devices = append(spec.Devices, fmt.Sprintf("gpu-%d", g))
		}
		events[i] = sched.Event{Kind: sched.NodeJoined, NodeSpec: spec, Time: v.Now}
	}
	return events, nil
}

// report has Next return an event.
func (d *fakeDriver) report(e sched.Event) {
	d.mu.Lock()
	d.events = append(d.events, e)
	d.mu.Unlock()
	select {
	case d.came <- struct{}{}:
	default:
	}
}

// next takes the event that came first.
func (d *fakeDriver) next(now sched.Time) []sched.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.events) == 0 {
		return nil
	}
	e := d.events[0]
	d.events = d.events[1:]
	e.Time, e.WorkFrom = now, now
	return []sched.Event{e}
}

// Next returns what came, one event at a time.
func (d *fakeDriver) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	for {
		now := d.Now()
		if events := d.next(min(now, max(until, d.view.Now))); events != nil {
			return events, nil
		}
		var tick <-chan time.Time
		if until != sched.Never {
			if now >= until {
				return []sched.Event{{Kind: sched.Ticked, Time: max(until, d.view.Now)}}, nil
			}
			tick = time.After(until.Sub(now))
		}
		select {
		case <-d.came:
		case <-tick:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Apply starts and stops attempts.
func (d *fakeDriver) Apply(_ context.Context, p sched.Plan) error {
	for i := range p.Actions {
		a := &p.Actions[i]
		switch e := (sched.Event{Job: a.Job, Attempt: a.Attempt}); a.Kind {
		case sched.Start:
			e.Kind, e.Rate = sched.AttemptStarted, 1
			d.report(e)
			if strings.HasPrefix(d.view.Job(a.Job).Spec.Name, "done") {
				e.Kind, e.Rate, e.Outcome = sched.AttemptEnded, 0, sched.Finished
				time.AfterFunc(20*time.Millisecond, func() { d.report(e) })
			}
		case sched.Stop:
			e.Kind, e.Outcome = sched.AttemptEnded, a.Why
			d.report(e)
		}
	}
	return nil
}
