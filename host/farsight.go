package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

const (
	// farRest is how many times as long as a look at many jobs took there is none: it takes a twentieth of the time.
	farRest = 19
	// farMost is how long a look at many jobs takes at most: those futures that were simulated by then are the answer.
	farMost = 20 * time.Second
	// farLasts is how long what was said holds where nothing happens.
	farLasts = time.Minute
)

// farsight is what was foreseen of many jobs. To look ahead of thousands takes longer than who asks has time, and what
// comes of it changes little with a single event: so the look goes on when no one waits for it any more, and what comes
// of it is the answer until there is another.
type farsight struct {
	mu    sync.Mutex
	said  *explain.Forecast // nil = nothing yet
	err   error             // why there is none
	start *Start            // that it is of
	of    uint64            // the version that it is of
	made  time.Time         // when
	next  time.Time         // before it there is no other look
	going chan struct{}     // closed when the look that goes on ends; nil = none does
}

// ask returns what is foreseen of many jobs of h, and looks again in the background if that is due. version is that of
// the world.
func (o *farsight) ask(ctx context.Context, h *Host, version uint64) (*explain.Forecast, error) {
	start := h.now.Load()
	o.mu.Lock()
	if o.start != start {
		o.start, o.said, o.err, o.next = start, nil, nil, time.Time{}
	}
	if o.going == nil && o.due(version, time.Now()) {
		o.going = make(chan struct{})
		go o.look(h, start, o.going)
	}
	said, err, going := o.said, o.err, o.going
	o.mu.Unlock()
	if said != nil || going == nil {
		return said, err
	}
	select {
	case <-going:
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.said, o.err
	case <-ctx.Done():
		return nil, nil //nolint:nilnil // not known in time
	}
}

// due reports whether it is time for another look at a world of a version.
func (o *farsight) due(version uint64, now time.Time) bool {
	return !now.Before(o.next) && (o.said == nil || o.of != version || now.Sub(o.made) > farLasts)
}

// look looks ahead of all jobs of h once.
func (o *farsight) look(h *Host, start *Start, done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), farMost)
	defer cancel()
	go func() { // a look is for no one once the host has ended
		select {
		case <-h.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	began := time.Now()
	var moment Moment
	var f *explain.Forecast
	var err error
	asked := h.Look(ctx, func(v *sched.View) { moment, err = h.take(v) })
	if err = errors.Join(asked, err); err == nil {
		f, err = h.outlook.foresee(ctx, moment)
	}
	if ctx.Err() != nil {
		err = nil // there was no time, which is said by saying nothing
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.going = nil; o.start == start { // else another system decides: what it will do is not seen yet
		o.err, o.next = err, time.Now().Add(farRest*time.Since(began))
		if f != nil {
			o.said, o.of, o.made = f, moment.View().Version, began
		}
	}
	close(done)
}
