package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is the lock of leaders, and knows until when it is held whatever became of this process meanwhile: one that was stopped
// for a while must not write before it has heard that it leads no more.
type lease struct {
	resourcelock.Interface

	lasts time.Duration

	mu      sync.Mutex
	renewed time.Time // when the last write that was taken began, by the monotonic clock; zero = none was
}

// errLease says that the lease has run out.
var errLease = errors.New("the lease has run out: another may lead")

// Create is that of the lock.
func (l *lease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(func() error { return l.Interface.Create(ctx, r) })
}

// Update is that of the lock. One that gives the lease up has it held no more, whether or not the API takes it.
func (l *lease) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == "" {
		l.mu.Lock()
		l.renewed = time.Time{}
		l.mu.Unlock()
		return l.Interface.Update(ctx, r)
	}
	return l.write(func() error { return l.Interface.Update(ctx, r) })
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
