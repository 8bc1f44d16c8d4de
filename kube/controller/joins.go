package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// joins is a driver that ends the start where a node joins of which the system should have known beforehand: GPUs are
// scored by number, and numbers are given as nodes join.
type joins struct {
	Driver

	l       *loaded
	v       *sched.View
	known   int             // of l.joins, those that have joined
	skipped map[string]bool // the controller's, for the next start
}

// Sync is that of the driver.
func (b *joins) Sync(ctx context.Context, v *sched.View) ([]sched.Event, error) {
	events, err := b.Driver.Sync(ctx, v)
	if err == nil {
		err = b.numbered(events)
	}
	return events, err
}

// Next is that of the driver.
func (b *joins) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	events, err := b.Driver.Next(ctx, until)
	if err == nil {
		err = b.numbered(events)
	}
	return events, err
}

// numbered checks that nodes join in the order in which they were numbered, as long as there are some that are scored.
func (b *joins) numbered(events []sched.Event) error {
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
		if (scored(e.NodeSpec.Name) || slices.ContainsFunc(b.l.joins[b.known:], scored)) &&
			!joined(b.v, e.NodeSpec.Name) {
			b.skip(e.NodeSpec.Name)
			return fmt.Errorf("%w: node %s joins, and GPUs are scored by number", ErrReload, e.NodeSpec.Name)
		}
	}
	return nil
}

// skip remembers the nodes that should have joined before this one, so that the next start numbers it first.
// Without that it would start again for ever where one of them never joins.
func (b *joins) skip(name string) {
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
