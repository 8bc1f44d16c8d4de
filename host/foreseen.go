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
	// momentLasts is for how long a moment is looked at again if nothing has happened since: whoever asks then, of
	// whichever job and by whichever way, has the same answer.
	momentLasts = 2 * time.Second
	// mostForeseen is of how many jobs that are not done all is foreseen at every moment; of more see farsight.
	mostForeseen = 200
)

// outlook is the moment that was copied last, and what was foreseen of all its jobs.
type outlook struct {
	turn chan struct{} // of the one who looks into the future

	mu     sync.Mutex
	moment Moment // nil = none
	start  *Start // that it is of
	at     sched.Time
	whole  *explain.Forecast // nil = not foreseen yet

	far farsight
}

// current returns the moment that v shows, if it was copied a moment ago and nothing has happened since; else nil.
func (o *outlook) current(s *Start, v *sched.View) Moment {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.moment == nil || o.start != s || o.moment.View().Version != v.Version || v.Now.Sub(o.at) > momentLasts {
		return nil
	}
	return o.moment
}

// keep keeps a moment for as long as it lasts.
func (o *outlook) keep(s *Start, m Moment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.moment, o.start, o.at, o.whole = m, s, m.View().Now, nil
	time.AfterFunc(2*momentLasts, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.moment == m { // a copy of a world is large
			o.moment, o.start, o.whole = nil, nil, nil
		}
	})
}

// foresee says when all jobs of a moment start and end, to one after the other: what was said before, if that is so.
// When ctx ends before it is known, that is no answer for others.
func (o *outlook) foresee(ctx context.Context, m Moment) (*explain.Forecast, error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f := o.said(m); f != nil {
		return f, nil
	}
	f, err := m.Forecast(ctx, nil, nil)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil && ctx.Err() == nil && o.moment == m {
		o.whole = f
	}
	return f, err
}

// said returns what was foreseen of all jobs of a moment; nil = nothing yet.
func (o *outlook) said(m Moment) *explain.Forecast {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.moment != m {
		return nil
	}
	return o.whole
}

// Outlook says when all jobs that are not done start and end, as Why says it of each at the same moment. Of more than
// 200 it is what was foreseen of them last, which may be of an earlier moment: see its At. It is nil where ctx ends
// before it is known, and where no one looks into the future.
func (h *Host) Outlook(ctx context.Context) (*explain.Forecast, error) {
	if h.o.Forecaster == nil {
		return nil, nil //nolint:nilnil // as said
	}
	var moment Moment
	var version uint64
	var err error
	asked := h.Look(ctx, func(v *sched.View) {
		if version = v.Version; unfinished(v) <= mostForeseen {
			moment, err = h.take(v)
		}
	})
	if failed := errors.Join(asked, err); failed != nil {
		return nil, failed
	}
	if moment == nil {
		return h.outlook.far.ask(ctx, h, version)
	}
	f, err := h.outlook.foresee(ctx, moment)
	if ctx.Err() != nil {
		return nil, nil //nolint:nilnil // as said
	}
	return f, err
}
