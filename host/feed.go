package host

import (
	"context"
	"fmt"
	"sync"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// feed lets those who follow know how far the log is durable. It is a Sink.
type feed struct {
	mu   sync.Mutex
	seq  uint64        // of the last event that is durable
	news chan struct{} // closed by the next durable batch that has events

	pending uint64
}

var (
	_ eventlog.Sink    = (*feed)(nil)
	_ eventlog.Batcher = (*feed)(nil)
)

func newFeed() *feed { return &feed{news: make(chan struct{})} }

// restart has it hear the log from its start, or from v on.
func (f *feed) restart(v *sched.View) {
	f.pending = 0
	if v != nil {
		f.pending = v.Version
	}
	_ = f.EndBatch()
}

// BeginBatch does nothing.
func (f *feed) BeginBatch() {}

// Log notes the event; it shows once the batch is durable.
func (f *feed) Log(_ *sched.View, e *sched.Event) { f.pending = e.Seq }

// EndBatch shows the events of the batch.
func (f *feed) EndBatch() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pending != f.seq {
		f.seq = f.pending
		close(f.news)
		f.news = make(chan struct{})
	}
	return nil
}

// last returns the last durable event, and what is closed when there are more.
func (f *feed) last() (seq uint64, more <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seq, f.news
}

// LastEvent returns the number of the last event that is durable; 0 = there is none.
func (h *Host) LastEvent() uint64 {
	seq, _ := h.feed.last()
	return seq
}

// page is how many events are read from the store at once: short enough to keep no one from writing.
const page = 256

// Events calls show with the lines of the log from the event numbered from on, one by one and each without its newline,
// first those that are there, then as they become durable. It returns when ctx ends, show returns an error, or the host
// stops (nil).
func (h *Host) Events(ctx context.Context, from uint64, show func(seq uint64, line []byte) error) error {
	pager, ok := h.o.Store.(Pager)
	if !ok {
		return ErrNotHere
	}
	for at := max(from, 1); ; {
		last, more := h.feed.last()
		for at <= last {
			lines, err := pager.Page(at, page)
			if err != nil {
				return err
			}
			if len(lines) == 0 {
				return fmt.Errorf("host: event %d of %d is not in the log", at, last)
			}
			for _, line := range lines {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err := show(at, line); err != nil {
					return err
				}
				at++
			}
		}
		select {
		case <-more:
		case <-h.over:
			if last, _ := h.feed.last(); at > last {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
