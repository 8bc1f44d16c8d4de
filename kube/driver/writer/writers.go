package writer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// How many writes are under way at once, how long one may take, and how long the pauses between tries are.
const (
	slots       = 32
	callTime    = 30 * time.Second
	FirstPause  = 100 * time.Millisecond
	lastPause   = 5 * time.Second
	lastRefused = 30 * time.Second // between tries of what is refused and must be done all the same
)

// Writers carry out tasks: those of a line one after the other, those of different lines at the same time.
type Writers struct {
	lease func() error
	log   *slog.Logger
	idle  bool
	quit  context.Context
	stop  context.CancelFunc
	slots chan struct{}
	lost  chan struct{} // closed when the lease is lost
	work  sync.WaitGroup

	mu    sync.Mutex
	lines map[string]*line
	fatal error
}

// line is the last task of a name, and how to call it off.
type line struct {
	cancel context.CancelFunc
	over   chan struct{}
}

// NewWriters returns writers. They ask lease before each write: an error ends their work, as another may lead. nil: no
// other may. Where idle is set, they carry out no task.
func NewWriters(lease func() error, idle bool, log *slog.Logger) *Writers {
	w := &Writers{
		lease: lease, idle: idle, log: log, slots: make(chan struct{}, slots), lost: make(chan struct{}),
		lines: make(map[string]*line),
	}
	w.quit, w.stop = context.WithCancel(context.Background())
	return w
}

// Close calls everything off and returns when nothing is under way.
func (w *Writers) Close() {
	w.stop()
	w.work.Wait()
}

// Go runs a function that Close calls off and waits for, and returns what calls it off before.
func (w *Writers) Go(f func(ctx context.Context)) context.CancelFunc {
	ctx, cancel := context.WithCancel(w.quit)
	w.work.Go(func() {
		defer cancel()
		f(ctx)
	})
	return cancel
}

// Do gives a line a task, which replaces the one that it has: that one is called off, and what it is writing is written
// first.
func (w *Writers) Do(name string, task func(ctx context.Context)) {
	if w.idle {
		return
	}
	ctx, cancel := context.WithCancel(w.quit)
	mine := &line{cancel, make(chan struct{})}
	w.mu.Lock()
	before := w.lines[name]
	w.lines[name] = mine
	w.mu.Unlock()
	w.work.Go(func() {
		defer cancel()
		if before != nil {
			before.cancel()
			<-before.over
		}
		if ctx.Err() == nil {
			task(ctx)
		}
		w.mu.Lock()
		if w.lines[name] == mine {
			delete(w.lines, name)
		}
		w.mu.Unlock()
		close(mine.over)
	})
}

// Write makes a call to the API server until it succeeds, or fails for good, or the task is called off, which is the
// error then. It never calls off a call that is under way: no one would know what came of it.
func (w *Writers) Write(ctx context.Context, call func(ctx context.Context) error) error {
	for pause := FirstPause; ; pause = min(2*pause, lastPause) {
		err := w.Once(ctx, call)
		if err == nil || !Transient(err) {
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

// Once makes a call, if we still lead.
func (w *Writers) Once(ctx context.Context, call func(ctx context.Context) error) error {
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.slots }()
	if w.lease != nil {
		if err := w.lease(); err != nil {
			w.fail(err)
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

// fail ends all work: others lead.
func (w *Writers) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fatal == nil {
		w.fatal = fmt.Errorf("driver: no longer the leader: %w", err)
		close(w.lost)
		w.stop()
	}
}

// Err returns why the driver must not go on; nil: it may.
func (w *Writers) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fatal
}

// Lost returns a channel that is closed once the lease is lost.
func (w *Writers) Lost() <-chan struct{} { return w.lost }

// Warn logs that something could not be done, unless it is no longer wanted.
func (w *Writers) Warn(ctx context.Context, err error, text string, args ...any) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		w.log.Warn(text, append(args, "error", err)...)
	}
}

// keepTrying tries something until it is done, with pauses, or ctx is.
func keepTrying(ctx context.Context, done func() bool) {
	for pause := FirstPause; !done(); pause = min(2*pause, lastRefused) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
