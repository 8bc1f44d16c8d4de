package controller

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// mostBusy is how long a decision may take, with all that is written because of it. A leader that takes longer is
// stuck, and the kubelet starts it again: all that it knows is in the API server.
const mostBusy = 2 * time.Minute

// pulse is since when a leader is at a decision. Any goroutine may use its methods.
type pulse struct {
	clock func() time.Time

	mu    sync.Mutex
	since time.Time // zero: it waits for something to happen, or does not lead
}

// set notes that a decision starts, or that it is done.
func (p *pulse) set(busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
	if busy {
		p.since = p.clock()
	}
}

// check returns an error once a decision is stuck. It answers requests for /healthz.
func (p *pulse) check(*http.Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return nil
	}
	if d := p.clock().Sub(p.since); d > mostBusy {
		return fmt.Errorf("decisions are stuck for %v, want at most %v", d.Round(time.Second), mostBusy)
	}
	return nil
}

// beating is a driver that shows by a pulse whether decisions are made.
type beating struct {
	Driver

	pulse *pulse
}

// Next waits for something to happen. Between its return and the next call something is decided.
func (b *beating) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	b.pulse.set(false)
	defer b.pulse.set(true)
	return b.Driver.Next(ctx, until)
}

// Close ends the driver, and what was decided with it.
func (b *beating) Close() {
	defer b.pulse.set(false)
	b.Driver.Close()
}
