package key

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/suggest"
)

// Fault says what must change where a setting is wrong.
type Fault uint8

// Faults.
const (
	Unknown Fault = iota // the key: none takes it
	Abroad               // the key: it is not for this place
	Value                // the value
	Absent               // the file that the value names: it is not there, or cannot be opened
	Damaged              // what the file holds
)

// Error is what is wrong with a setting. All programs show it in the same words.
type Error struct {
	Key   string
	Fault Fault
	err   error
	why   string // without who and key; "": as err
}

// Error says it.
func (e *Error) Error() string { return e.err.Error() }

// Bare is the error for one who sees system and key next to it.
func (e *Error) Bare() error {
	if e.why == "" {
		return e
	}
	return &Error{Key: e.Key, Fault: e.Fault, err: errors.New(e.why)}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// FaultOf returns the fault of the setting that err is about, and whether it is about one.
func FaultOf(err error) (Fault, bool) {
	e := (*Error)(nil)
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.Fault, true
}

// wrong says that a value is not what is wanted.
func wrong(name, value string, want error) error {
	return &Error{Key: name, Fault: Value, err: fmt.Errorf("%s=%q, want %w", name, value, want)}
}

func unknown(who, name string, names []string) error {
	return &Error{Key: name, Fault: Unknown,
		err: fmt.Errorf("%s takes no key %q%s; it takes %s", who, name, suggest.Hint(name, names),
			strings.Join(names, ", "))}
}

// abroad says why a key is not for a place.
func abroad(who string, k *Key, where Use) error {
	why := "the GPUs of this machine are its own: they are neither rented, nor capped, nor put to sleep"
	if k.Use == Simulation {
		why = "it belongs to the simulated world; real jobs take the time they take"
	} else if where == Simulation {
		why = "it is for real jobs"
	}
	return &Error{Key: k.Name, Fault: Abroad, err: fmt.Errorf("%s: %s: %s", who, k.Name, why), why: why}
}

func absent(name, want string, err error) error {
	return &Error{Key: name, Fault: Absent, err: fmt.Errorf("%s: %w; want %s", name, err, want)}
}

// Check returns an error about the first key of settings, in order of name, that is not in the list or not for the
// place. who is the one who takes the keys, as in "system: fifo".
func (l List) Check(who string, settings map[string]string, where Use) error {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		k := l.Find(name)
		if k == nil {
			return unknown(who, name, l.At(where).Names())
		}
		if !k.At(where) {
			return abroad(who, k, where)
		}
	}
	return nil
}

// At returns the keys that are for a place.
func (l List) At(where Use) List {
	return slices.DeleteFunc(slices.Clone(l), func(k Key) bool { return !k.At(where) })
}
