package observer

import (
	"github.com/trainyard/trainyard/sched"
)

// Found is what looks at objects found.
type Found struct {
	Events []sched.Event // for the engine, in order; the Observer dates them
	Again  []Key         // of objects that these events concern
}

// Report adds an event.
func (f *Found) Report(e sched.Event) { f.Events = append(f.Events, e) }

// LookAgain adds keys of objects to look at again: in the same look if their turn is yet to come, else in the next one,
// when the engine has folded the events.
func (f *Found) LookAgain(keys ...Key) { f.Again = append(f.Again, keys...) }

// Add adds what another look found.
func (f *Found) Add(other Found) {
	f.Events = append(f.Events, other.Events...)
	f.Again = append(f.Again, other.Again...)
}
