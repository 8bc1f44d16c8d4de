package engine_test

import (
	"context"
	"io"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// deaf is a driver that writes down how many nodes it is asked to rent, and ends.
type deaf struct{ rent []int32 }

func (*deaf) Sync(context.Context, *sched.View) ([]sched.Event, error) { return nil, nil }
func (*deaf) Next(context.Context, sched.Time) ([]sched.Event, error)  { return nil, io.EOF }
func (*deaf) Now() sched.Time                                          { return 0 }
func (d *deaf) Apply(_ context.Context, p sched.Plan) error {
	for _, a := range p.Actions {
		if a.Kind == sched.Rent {
			d.rent = append(d.rent, a.Count)
		}
	}
	return nil
}

// fewer wants two nodes of the first pool.
type fewer struct{ pipeline.Pipeline }

func (*fewer) Observe(*sched.View, *sched.Event)     {}
func (*fewer) Waits() (until sched.Time, known bool) { return 0, false }
func (*fewer) Decide(_ *sched.View, d *sched.Desired) {
	d.Pools = append(d.Pools, sched.PoolTarget{Pool: 0, Count: 2})
}

// Ensure that of an order which an earlier run gave, and the first decision of this one replaces, the driver hears the
// old one first: what it is asked last holds.
func TestAnOldOrderComesBeforeTheNew(t *testing.T) {
	s := engine.NewState(eventlog.Header{Pools: []sched.PoolSpec{{Name: "spot", GPUs: 1, Max: 5}}})
	for _, e := range []sched.Event{
		{Kind: sched.Moved, Job: sched.None, Node: sched.None, Code: 3},
		{Kind: sched.Ordered, Job: sched.None, Code: int32(sched.Rent), Value: 3},
	} {
		s.Apply(&e)
	}
	var d deaf
	if err := engine.Run(t.Context(), s, &d, &fewer{}, engine.Options{}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.rent, []int32{3, 2}) {
		t.Errorf("asked to rent %v nodes, want 3, then 2", d.rent)
	}
}

// sated waits, and counts how often it is asked nevertheless.
type sated struct {
	pipeline.Pipeline
	asked int
}

func (*sated) Observe(*sched.View, *sched.Event)     {}
func (*sated) Waits() (until sched.Time, known bool) { return 0, true }
func (s *sated) Decide(*sched.View, *sched.Desired)  { s.asked++ }

// Ensure that the replay of a log that goes on from a state asks a system that waits no sooner than the run did: not
// before something happens, though what is rented may have changed since it was asked.
func TestAReplayGoesOnWaiting(t *testing.T) {
	packed, err := (&eventlog.Beginning{View: sched.View{Now: 5e9, Version: 7}}).Pack()
	if err != nil {
		t.Fatal(err)
	}
	dec, tick := new(sated),
		&eventlog.Record{Batch: 2, Event: sched.Event{Seq: 8, Time: 6e9, Kind: sched.Ticked, Job: sched.None,
			Node: sched.None, Pool: sched.None}}
	log := func(yield func(*eventlog.Record, error) bool) { yield(tick, nil) }
	if err := engine.Replay(t.Context(), eventlog.Header{Schema: eventlog.Schema, State: packed}, log, dec,
		engine.ReplayOptions{}); err != nil {
		t.Fatal(err)
	}
	if dec.asked != 1 {
		t.Errorf("asked %d times, want once, as something happens", dec.asked)
	}
}
