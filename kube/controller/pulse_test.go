package controller

import (
	"context"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// still is a driver to which nothing happens.
type still struct{ Driver }

func (still) Next(context.Context, sched.Time) ([]sched.Event, error) { return nil, nil }

func (still) Close() {}

// Ensure that a leader is healthy while it waits, however long, and while it decides, but not once that takes longer
// than a decision may; and that one that was ended is.
func TestPulse(t *testing.T) {
	now := time.Unix(0, 0)
	p := &pulse{clock: func() time.Time { return now }}
	b := &beating{still{}, p}
	healthy := func(want bool) {
		t.Helper()
		if err := p.check(nil); (err == nil) != want {
			t.Errorf("%v, want healthy: %v", err, want)
		}
	}
	now = now.Add(time.Hour)
	healthy(true)
	if _, err := b.Next(t.Context(), sched.Never); err != nil {
		t.Fatal(err)
	}
	healthy(true)
	now = now.Add(mostBusy)
	healthy(true)
	now = now.Add(time.Second)
	healthy(false)
	if _, err := b.Next(t.Context(), sched.Never); err != nil {
		t.Fatal(err)
	}
	healthy(true)
	now = now.Add(time.Hour)
	healthy(false)
	b.Close()
	healthy(true)
}
