package controller

import (
	"context"
	"fmt"

	"github.com/trainyard/trainyard/sched"
)

// begins is a driver that tells first, if there is a reason, that a system begins anew. It ends the run where a node joins of which
// the system should have known beforehand: GPUs are scored by number, and numbers are given as nodes join.
type begins struct {
	sched.Driver

	l     *loaded
	known int // of l.joins, those that have joined
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

// Next is that of the driver.
func (b *begins) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	events, err := b.Driver.Next(ctx, until)
	if err == nil {
		err = b.numbered(events)
	}
	return events, err
}

// numbered checks that nodes that are scored join in the order in which they were numbered.
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
		if b.l.scored[e.NodeSpec.Name] && b.l.state.View().Version > 0 && !joined(b.l.state.View(), e.NodeSpec.Name) {
			return fmt.Errorf("%w: node %s joins, whose GPUs are scored", ErrReload, e.NodeSpec.Name)
		}
	}
	return nil
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
