package site

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/sched"
)

// silent are the outputs of attempts that wrote nothing.
type silent struct{ opened func() }

func (s silent) Open(context.Context, Source) (Output, error) { s.opened(); return nil, nil }
func (silent) Last(Source) (time.Time, bool)                  { return time.Time{}, false }
func (silent) Place(string) error                             { return nil }
func (silent) Tail(sched.JobID, int32, int) []string          { return nil }

// Ensure that reading ends with its context, however many attempts there are to go through, and that an attempt before
// the first is refused.
func TestReadingEndsWithItsContext(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	opened := 0
	r := Reading{Of: silent{func() {
		if opened++; opened == 10 {
			leave()
		}
	}}, From: Point{Attempt: 1}, Follow: true, Lines: -1, Current: func() (Standing, <-chan struct{}) {
		return Standing{Attempts: math.MaxInt32}, nil
	}}
	if err := r.Run(ctx); !errors.Is(err, context.Canceled) || opened != 10 {
		t.Errorf("%v after %d attempts", err, opened)
	}
	r.From = Point{Attempt: math.MinInt32}
	if err := r.Run(t.Context()); !errors.Is(err, api.ErrRefused) {
		t.Errorf("an attempt before the first: %v", err)
	}
}
