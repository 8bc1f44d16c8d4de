package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// begins is a driver that tells first, if there is a reason, that a system begins anew, and ticks where a batch is wanted. It ends the run where a node joins of which
// the system should have known beforehand: GPUs are scored by number, and numbers are given as nodes join.
type begins struct {
	sched.Driver

	l       *loaded
	known   int             // of l.joins, those that have joined
	skipped map[string]bool // the controller's, for the next beginning

	wake func() sched.Time // when a batch is wanted though nothing happens
}

// Sync is that of the driver, behind the news.
func (b *begins) Sync(ctx context.Context, v *sched.View) ([]sched.Event, error) {
	now := v.Now
	events, err := b.Driver.Sync(ctx, v)
	if err == nil {
		err = b.numbered(events)
	}
	if b.l.renewed != "" {
		events = append([]sched.Event{{Time: now, Kind: sched.Renewed, Text: b.l.renewed}}, events...)
	}
	return events, err
}

// Next is that of the driver, until a batch is wanted at the latest, and with a tick now and then while anything is rented, so that what is
// spent is told.
func (b *begins) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	v := b.l.state.View()
	if slices.ContainsFunc(v.Pools, func(p sched.Pool) bool { return p.Nodes > 0 }) {
		until = min(until, v.Now+spendEvery)
	}
	events, err := b.Driver.Next(ctx, min(until, b.wake()))
	if err == nil {
		err = b.numbered(events)
	}
	return events, err
}

// numbered checks that nodes join in the order in which they were numbered, as long as there are some that are scored.
func (b *begins) numbered(events []sched.Event) error {
	for i := range events {
		e := &events[i]
		if e.Kind != sched.NodeJoined {
			continue
		}
		if b.known < len(b.l.joins) && b.l.joins[b.known] == e.NodeSpec.Name {
			b.known++
			continue
		}
		scored := func(name string) bool { return b.l.scored[name] }
		if (scored(e.NodeSpec.Name) || slices.ContainsFunc(b.l.joins[b.known:], scored)) && !joined(b.l.state.View(), e.NodeSpec.Name) {
			b.skip(e.NodeSpec.Name)
			return fmt.Errorf("%w: node %s joins, and GPUs are scored by number", ErrReload, e.NodeSpec.Name)
		}
	}
	return nil
}

// skip remembers the nodes that should have joined before this one, so that the next beginning numbers it first. Without that it would
// begin anew for ever where one of them never joins.
func (b *begins) skip(name string) {
	delete(b.skipped, name)
	rest := b.l.joins[b.known:]
	for _, before := range rest[:max(slices.Index(rest, name), 0)] {
		b.skipped[before] = true
	}
}

// joined reports whether a node has a number.
func joined(v *sched.View, name string) bool {
	for i := range v.Nodes {
		if v.Nodes[i].Spec.Name == name && v.Nodes[i].State != sched.NodeGone {
			return true
		}
	}
	return false
}
