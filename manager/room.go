package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/manager/store"
)

// room knows whether the disk of a folder has room. Where it has none, nothing new is taken or started, and what
// happens is written into the room that the reserve had, until there is room again. All may ask it at any time.
type room struct {
	dir     string
	log     *slog.Logger
	mu      sync.Mutex  // of who makes the reserve or gives it up
	warned  bool        // that no reserve can be made, for another reason than room
	full    atomic.Bool // nothing new is taken or started
	blocked atomic.Bool // a batch waits for room: nothing that happens can be made durable
}

const (
	lookForRoom = 500 * time.Millisecond // how often it is looked whether there is room
	leastRoom   = 4 << 20                // bytes: with less free nothing starts, whatever the reserve has
)

// look finds out whether there is room, and makes the reserve.
func (r *room) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	free, err := store.Free(r.dir)
	if err != nil {
		return // nothing is known
	}
	bad := store.Reserve(r.dir)
	full := free < leastRoom || r.full.Load() && free < store.Margin || errors.Is(bad, store.ErrNoRoom)
	if bad != nil && !errors.Is(bad, store.ErrNoRoom) && !r.warned {
		r.warned = true
		r.log.Warn("no reserve for a full disk", "error", bad)
	}
	if full && !store.Reserved(r.dir) {
		store.Spare(r.dir)
	}
	r.set(full)
}

// giveUp gives the reserve up, and reports whether there was one.
func (r *room) giveUp(s *store.Store) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.set(true)
	return s.GiveUp()
}

// set notes whether the disk is full, and has users hear of it.
func (r *room) set(full bool) {
	switch was := r.full.Swap(full); {
	case full && !was:
		r.log.Warn(r.why())
	case !full && was:
		r.log.Warn("the disk of " + r.dir + " has room again: jobs are taken and started")
	}
}

// why says in a sentence why nothing is taken or started; "" where it is.
func (r *room) why() string {
	if !r.full.Load() {
		return ""
	}
	free, _ := store.Free(r.dir)
	wanted := int64(store.ReserveSize + store.Margin)
	if store.Reserved(r.dir) {
		wanted = store.Margin
	}
	return fmt.Sprintf("the disk of %s is full: %s free, want %s; until then no job is taken or started", r.dir,
		mebibytes(free), mebibytes(wanted))
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// refuse is the error of jobs that are not taken.
func (r *room) refuse() error {
	if why := r.why(); why != "" {
		return fmt.Errorf("%w: %s", api.ErrFull, why)
	}
	return nil
}

// ready is the error of all requests while nothing can be made durable. What was asked for before may be yet.
func (r *room) ready() error {
	if r.blocked.Load() {
		return fmt.Errorf("%w: %s, and nothing that happens can be written", api.ErrTimeout, r.why())
	}
	return nil
}

// watch looks for room until ctx ends, and calls changed when there is some or none any more.
func (r *room) watch(ctx context.Context, changed func()) {
	tick := time.NewTicker(lookForRoom)
	defer tick.Stop()
	reported := false
	for {
		r.look()
		if full := r.full.Load(); full != reported { // a commit may have found that out
			reported = full
			changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// commit makes a batch durable. Where there is no room for it, the reserve is given up; where that does not help, it
// waits for room until ctx ends.
func (r *room) commit(ctx context.Context, s *store.Store, write func() error) error {
	defer r.blocked.Store(false)
	for {
		err := write()
		if err == nil || !store.NoRoom(r.dir, err) {
			return err
		}
		if r.giveUp(s) {
			continue
		}
		r.blocked.Store(true)
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(lookForRoom):
		}
	}
}
