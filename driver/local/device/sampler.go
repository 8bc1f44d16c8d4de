package device

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Sampler shares looks at the devices: all who ask while a look is under way get the next one, so that there is never
// more than one, however many wait. A look that hangs is waited for by no one longer than the patience, and no other is
// started before it is over: a driver that hangs would collect them.
type Sampler struct {
	backend  Backend
	patience time.Duration
	ctx      context.Context // of all looks
	cancel   context.CancelFunc

	mu    sync.Mutex
	now   *look // under way
	after *look // for those who came meanwhile
}

// look is a sample that several wait for.
type look struct {
	done   chan struct{}
	sample *Sample
	err    error
}

// NewSampler returns a sampler of a backend. Who asks gets an answer, or an error, within the patience.
func NewSampler(b Backend, patience time.Duration) *Sampler {
	ctx, cancel := context.WithCancel(context.Background())
	return &Sampler{backend: b, patience: patience, ctx: ctx, cancel: cancel}
}

// Close ends what is under way, as far as that can be ended, and waits for nothing.
func (s *Sampler) Close() { s.cancel() }

// Sample returns a look that started after the call. It is shared, and not to be changed.
func (s *Sampler) Sample(ctx context.Context) (*Sample, error) {
	l := s.join()
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	select {
	case <-l.done:
		return l.sample, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	case <-timer.C:
		return nil, fmt.Errorf("no look at the devices within %v", s.patience)
	}
}

// join returns the look to wait for, and starts it if none is under way.
func (s *Sampler) join() *look {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		s.now = &look{done: make(chan struct{})}
		go s.take(s.now)
		return s.now
	}
	if s.after == nil {
		s.after = &look{done: make(chan struct{})}
	}
	return s.after
}

// take looks, then again for those who came meanwhile.
func (s *Sampler) take(l *look) {
	for l != nil {
		ctx, cancel := context.WithTimeout(s.ctx, s.patience)
		l.sample, l.err = s.backend.Sample(ctx)
		cancel()
		close(l.done)
		s.mu.Lock()
		l, s.after = s.after, nil
		s.now = l
		s.mu.Unlock()
	}
}
