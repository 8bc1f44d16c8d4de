package key

import (
	"fmt"
	"maps"
	"slices"
)

// Settings are the values given to keys. Keys read them. The first thing found wrong is kept.
type Settings struct {
	values   map[string]string
	contents Contents // of the files that values name
	declared List     // nil: any key may read
	scored   bool     // PM scores of the GPUs are known
	read     map[string]bool
	err      error
}

// NewSettings returns settings with the given values, which it does not copy. Any key may read them until they are
// bound.
func NewSettings(values map[string]string) *Settings {
	return &Settings{values: values, read: make(map[string]bool)}
}

// Bind has only declared keys read s, by the defaults declared there. scored says that PM scores of the GPUs are known,
// and contents are of the files that values name.
func (s *Settings) Bind(declared List, scored bool, contents Contents) *Settings {
	s.declared, s.scored, s.contents = declared, scored, contents
	return s
}

// Err returns the first thing found wrong.
func (s *Settings) Err() error { return s.err }

// Has reports whether a key was given.
func (s *Settings) Has(name string) bool {
	_, given := s.values[name]
	return given
}

// Text returns the value given to a key as it was written, "" where it is absent, as it is of keys that are not taken.
func (s *Settings) Text(k *Key) string {
	text, given := s.values[k.Name]
	if given || s.declared.Find(k.Name) != nil {
		s.note(k.Name)
	}
	return text
}

// Refuse keeps that a value that can be read makes no sense; want says what does.
func (s *Settings) Refuse(name, want string) {
	s.fail(wrong(name, s.values[name], fmt.Errorf("%s", want)))
}

// Read returns the names of the keys that were read, in order.
func (s *Settings) Read() []string { return slices.Sorted(maps.Keys(s.read)) }

// note keeps that a key is read, and returns its declaration; nil where s is not bound.
func (s *Settings) note(name string) *Key {
	s.read[name] = true
	if s.declared == nil {
		return nil
	}
	k := s.declared.Find(name)
	if k == nil {
		s.fail(fmt.Errorf("the key %s is read though it is not declared", name))
	}
	return k
}

func (s *Settings) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}
