package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// How many writes are under way at once, how long one may take, and how long the pauses between tries are.
const (
	hands      = 32
	callTime   = 30 * time.Second
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// crew carries out tasks: those of a line one after the other, those of different lines side by side.
type crew struct {
	lease func() error
	quit  context.Context
	stop  context.CancelFunc
	slots chan struct{}
	lost  chan struct{} // closed when the lease is lost
	work  sync.WaitGroup

	mu    sync.Mutex
	lines map[string]*line
	fatal error
}

// line is the task of a name that was given last, and how to call it off.
type line struct {
	cancel context.CancelFunc
	over   chan struct{}
}

func newCrew(lease func() error) *crew {
	c := &crew{lease: lease, slots: make(chan struct{}, hands), lost: make(chan struct{}), lines: make(map[string]*line)}
	c.quit, c.stop = context.WithCancel(context.Background())
	return c
}

// close calls everything off and returns when nothing is under way.
func (c *crew) close() {
	c.stop()
	c.work.Wait()
}

// do gives a line a task, which replaces the one that it has: that is called off, and what it is writing is written first.
func (c *crew) do(name string, task func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(c.quit)
	mine := &line{cancel, make(chan struct{})}
	c.mu.Lock()
	before := c.lines[name]
	c.lines[name] = mine
	c.mu.Unlock()
	c.work.Go(func() {
		defer cancel()
		if before != nil {
			before.cancel()
			<-before.over
		}
		if ctx.Err() == nil {
			task(ctx)
		}
		c.mu.Lock()
		if c.lines[name] == mine {
			delete(c.lines, name)
		}
		c.mu.Unlock()
		close(mine.over)
	})
}

// write has a call to the API server made until it succeeds, or fails for good, or the task is called off, which is the error then.
// A call that is under way is never called off: nobody would know what came of it.
func (c *crew) write(ctx context.Context, call func(ctx context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := c.once(ctx, call)
		if err == nil || !transient(err) {
			return err
		}
		wait := pause
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			wait = max(wait, time.Duration(seconds)*time.Second)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// once makes a call, if we still lead.
func (c *crew) once(ctx context.Context, call func(ctx context.Context) error) error {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.slots }()
	if c.lease != nil {
		if err := c.lease(); err != nil {
			c.fail(err)
			return context.Canceled
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	return call(patient)
}

// fail has the driver end: others lead.
func (c *crew) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fatal == nil {
		c.fatal = fmt.Errorf("driver: no longer the leader: %w", err)
		close(c.lost)
		c.stop()
	}
}

// err returns why the driver must not go on, if it must not.
func (c *crew) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fatal
}

// transient reports whether what failed may succeed when it is tried again. What the server refuses for what it says does not; of
// what could not be asked or answered nobody knows. What is no error of the server is one of the way to it.
func transient(err error) bool {
	var hopeless fatalError
	var hopeful retryError
	switch {
	case errors.As(err, &hopeless) || errors.Is(err, context.Canceled) || IsTooLarge(err):
		return false
	case errors.As(err, &hopeful):
		return true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	switch code := status.Status().Code; {
	case code == 409: // but for those that say something
		return !apierrors.IsAlreadyExists(err)
	case code == 401 || code == 408 || code == 429:
		return true
	default:
		return code == 0 || code >= 500
	}
}
