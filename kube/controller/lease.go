package controller

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is the lock of leaders, and knows until when it is held whatever became of this process meanwhile: one that was
// stopped for a while must not write before it has heard that it leads no more.
type lease struct {
	resourcelock.Interface

	lasts time.Duration

	mu      sync.Mutex
	renewed time.Time // when the last write that was taken started, by the monotonic clock; zero = none was
	mine    bool      // by the last look
	busy    bool      // what it guards is at work
}

// errLease says that the lease has run out.
var errLease = errors.New("the lease has run out: another may lead")

// Get is that of the lock. Who sees that another holds the lease, or no one, holds it no more: it may have been edited,
// or deleted.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.mu.Lock()
		if l.mine = r.HolderIdentity == l.Identity(); !l.mine {
			l.renewed = time.Time{}
		}
		l.mu.Unlock()
	}
	return r, raw, err
}

// Create is that of the lock.
func (l *lease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(func() error { return l.Interface.Create(ctx, r) })
}

// Update is that of the lock. One that gives the lease up has it held no more, whether or not the API takes it.
func (l *lease) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == "" {
		return l.giveUp(ctx, r)
	}
	return l.write(func() error { return l.Interface.Update(ctx, r) })
}

// giveUp leaves a lease alone that another has taken meanwhile: an elector that was stopped looks who holds it, and
// gives it up all the same (client-go, LeaderElector.release). One whose work goes on, as where the API did not answer
// for a while, it leaves to run out.
func (l *lease) giveUp(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	l.renewed = time.Time{}
	leave := l.busy || !l.mine
	l.mu.Unlock()
	if leave {
		return nil
	}
	return l.Interface.Update(ctx, r)
}

// work notes whether what the lease guards is at work.
func (l *lease) work(goesOn bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = goesOn
}

func (l *lease) write(do func() error) error {
	began := time.Now()
	err := do()
	if err == nil {
		l.mu.Lock()
		l.renewed = began
		l.mu.Unlock()
	}
	return err
}

// held returns an error once another may lead.
func (l *lease) held() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() || time.Since(l.renewed) >= l.lasts {
		return errLease
	}
	return nil
}

// guarded has all writes of clients with this configuration pass a fence.
func guarded(config *rest.Config, held func() error) {
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &fence{rt, held} })
}

// fence lets no write leave once the lease has run out: client-go tries some again by itself, long after its caller had
// asked.
type fence struct {
	http.RoundTripper

	held func() error
}

// RoundTrip is that of the transport.
func (f *fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		if err := f.held(); err != nil {
			return nil, err
		}
	}
	return f.RoundTripper.RoundTrip(r)
}
