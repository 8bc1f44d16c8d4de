// Package key declares settings. A key is declared once: its name, default and meaning, how its value is read, which
// files it names and where it may be given. Help, checks, the files to open and what a program reads all follow from
// the declaration.
package key

import "slices"

// Key is what is declared of a setting, whatever the type of its value.
type Key struct {
	Name, Default, Doc string
	Live               string   // default for real jobs; "": Default
	LiveSince          int      // schema of logs of real jobs from which on Live holds; 0 = always
	Scored             string   // default where PM scores of the GPUs are known; "": Default
	Use                Use      // where it may be given; 0: everywhere
	Choices            []string // values that are words, for completion
	Files              *Files   // what its values name; nil: no files

	check func(value string) error
}

// Use says where a key may be given.
type Use uint8

// Places where a system decides.
const (
	Simulation Use = 1 << iota
	Machine        // real jobs on one machine
	Cluster        // real jobs on Kubernetes
)

// At reports whether the key may be given there; 0 is anywhere.
func (k *Key) At(where Use) bool { return k.Use == 0 || where == 0 || k.Use&where != 0 }

// Places returns the names of the places where the key may be given.
func (k *Key) Places() (names []string) {
	for i, name := range [...]string{"simulation", "machine", "cluster"} {
		if k.At(Use(1 << i)) {
			names = append(names, name)
		}
	}
	return names
}

// Check returns what is wrong with a value, nil if nothing is. It does not look at files.
func (k *Key) Check(value string) error {
	if k.check == nil {
		return nil
	}
	if err := k.check(value); err != nil {
		return wrong(k.Name, value, err)
	}
	return nil
}

// Of is a key whose value is a T. The zero T stands for a key that is absent and has no default.
type Of[T any] struct {
	Key
	parse func(text string) (T, error)
}

// New declares a key that parse reads. Errors of parse say what is wanted instead, as in "a number > 0".
func New[T any](name, def, doc string, parse func(text string) (T, error)) Of[T] {
	k := Of[T]{Key: Key{Name: name, Default: def, Doc: doc}, parse: parse}
	k.check = func(value string) error {
		_, err := parse(value)
		return err
	}
	return k
}

// As returns the key with another default and meaning, read the same way.
func (k Of[T]) As(def, doc string) Of[T] {
	k.Default, k.Doc = def, doc
	return k
}

// Lives returns the key with a default of its own for real jobs.
func (k Of[T]) Lives(def string) Of[T] {
	k.Live = def
	return k
}

// LivesSince is Lives for a key that logs of real jobs know from a schema on: under those before it was not there.
func (k Of[T]) LivesSince(schema int, def string) Of[T] {
	k.Live, k.LiveSince = def, schema
	return k
}

// WithScores returns the key with a default of its own where PM scores of the GPUs are known.
func (k Of[T]) WithScores(def string) Of[T] {
	k.Scored = def
	return k
}

// Only returns the key for some places.
func (k Of[T]) Only(where Use) Of[T] {
	k.Use = where
	return k
}

// Standard returns the value of the default.
func (k Of[T]) Standard() (value T) {
	if k.Default != "" && k.parse != nil {
		value, _ = k.parse(k.Default) // a test reads all defaults
	}
	return value
}

// Given reports whether the settings have the key.
func (k Of[T]) Given(s *Settings) bool {
	s.note(k.Name)
	return s.Has(k.Name)
}

// Taken reports whether the settings are those of one that takes the key.
func (k Of[T]) Taken(s *Settings) bool { return s.declared == nil || s.declared.Find(k.Name) != nil }

// Get returns the value in s, or the default that s has for the key. s keeps what is wrong with it.
func (k Of[T]) Get(s *Settings) (value T) {
	d := s.note(k.Name)
	if d == nil {
		d = &k.Key
	}
	if k.Files != nil {
		value, _ = s.contents[k.Name].(T)
		return value
	}
	text, given := s.values[k.Name]
	if !given {
		if text = d.standard(s.scored); text == "" {
			return value
		}
	}
	x, err := k.parse(text)
	if err != nil {
		s.fail(wrong(k.Name, text, err))
		return k.Standard()
	}
	return x
}

// standard is the default.
func (k *Key) standard(scored bool) string {
	if scored && k.Scored != "" {
		return k.Scored
	}
	return k.Default
}

// Is reports whether the given value is not refused and, where it is a number, not 0. Absent keys are 0.
func (k *Key) Is(s *Settings) bool {
	text, given := s.values[k.Name]
	if !given {
		return false
	}
	s.note(k.Name)
	if err := k.Check(text); err != nil {
		s.fail(err)
		return false
	}
	x, err := number(text)
	return err != nil || x != 0
}

// List are keys, each name once.
type List []Key

// Join puts lists together.
func Join(lists ...List) List { return slices.Concat(lists...) }

// Names returns the names in order.
func (l List) Names() []string {
	names := make([]string, len(l))
	for i := range l {
		names[i] = l[i].Name
	}
	return names
}

// Find returns the key of a name, nil if there is none.
func (l List) Find(name string) *Key {
	for i := range l {
		if l[i].Name == name {
			return &l[i]
		}
	}
	return nil
}
