package observer

import (
	"log/slog"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/sched"
)

// retryAfter is when an object is looked at again after a look at it failed.
const retryAfter = time.Second

// Observer runs looks at what changed. It belongs to one goroutine.
type Observer struct {
	queue *Queue
	log   *slog.Logger
	next  []Key // of the next look, when the engine has folded what the last one found
}

// New returns an observer of what changes in a queue.
func New(q *Queue, log *slog.Logger) *Observer { return &Observer{queue: q, log: log} }

// Steps are what a look consists of.
type Steps struct {
	Object func(Key) (Found, error) // looks at one object
	Kind   func(Kind) Found         // runs once all objects of a kind have been looked at
}

// Waits reports whether objects are to be looked at that no queue holds.
func (o *Observer) Waits() bool { return len(o.next) > 0 }

// Take returns the keys of everything that is to be looked at now.
func (o *Observer) Take() []Key {
	keys := append(o.queue.Take(), o.next...)
	o.next = nil
	return keys
}

// Look looks at objects, in the order of their kinds, and returns the events that this gave, at the time now.
func (o *Observer) Look(now sched.Time, keys []Key, s Steps) []sched.Event {
	p := pass{observer: o, now: now}
	for i := range p.keys {
		p.keys[i] = make(map[types.NamespacedName]bool)
	}
	for _, k := range keys {
		p.keys[k.Kind][k.NamespacedName] = true
	}
	for p.kind = range Kind(kinds) {
		for _, k := range p.ofKind() {
			found, err := s.Object(k)
			p.add(found)
			if err != nil {
				o.log.Warn("an object cannot be looked at", "object", k.String(), "error", err)
				time.AfterFunc(retryAfter, func() { o.queue.Push(k) })
			}
		}
		p.add(s.Kind(p.kind))
	}
	return p.events
}

// pass is a look under way.
type pass struct {
	observer *Observer
	now      sched.Time
	keys     [kinds]map[types.NamespacedName]bool // to look at
	kind     Kind                                 // looked at now
	events   []sched.Event
}

// ofKind returns the keys of the kind that is looked at now, in order.
func (p *pass) ofKind() []Key {
	keys := make([]Key, 0, len(p.keys[p.kind]))
	for name := range p.keys[p.kind] {
		keys = append(keys, Key{p.kind, name})
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// add takes what a step found.
func (p *pass) add(f Found) {
	for _, e := range f.Events {
		e.Time = p.now
		p.events = append(p.events, e)
	}
	for _, k := range f.Again {
		if k.Kind > p.kind {
			p.keys[k.Kind][k.NamespacedName] = true
		} else {
			p.observer.next = append(p.observer.next, k)
		}
	}
}
