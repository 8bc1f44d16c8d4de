package api

import (
	"context"
	"errors"
	"sync"
	"time"
)

// absence is for how long a client has found no manager.
type absence struct {
	mu    sync.Mutex
	limit time.Duration // 0 = none is outlasted
	begun func()
	met   bool      // one has answered
	since time.Time // zero = it is there
}

// Outlast has a client that a manager has answered once wait for the next when that one is gone: what only reads is
// asked for again, and a stream goes on where it broke. started is called at each absence; after limit without a
// manager the request fails as it would have at once. What changes something is never asked for twice. It is called
// before the first request.
func (c *Client) Outlast(limit time.Duration, begun func()) {
	c.away.limit, c.away.begun = limit, begun
}

// outlasts reports whether a request that ended so is to be made again, after a while.
func (a *absence) outlasts(ctx context.Context, err error) bool {
	if !a.bears(err, time.Now()) {
		return false
	}
	pause(ctx)
	return true
}

// bears notes whether a manager was there, and reports whether its absence is still borne.
func (a *absence) bears(err error, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case !errors.Is(err, ErrNoManager) && !errors.Is(err, ErrStopped) && !errors.Is(err, ErrNotLeading):
		a.met, a.since = true, time.Time{}
		return false
	case !a.met || a.limit <= 0:
		return false
	case a.since.IsZero():
		a.since = now
		a.begun()
	}
	return now.Sub(a.since) < a.limit
}
