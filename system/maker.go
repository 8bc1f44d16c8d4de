package system

import (
	"reflect"

	"github.com/trainyard/trainyard/system/key"
)

// Maker makes a system, or its stages, from what its family may know and from settings.
type Maker[T any] interface {
	// Known is the type of what the system is given to know of jobs and GPUs: it cannot know more.
	Known() reflect.Type
	Make(k Knowledge, s *key.Settings) (T, error)
}

// given returns a maker that takes out of all that is known what its family may know, of type K, and builds a system
// from that.
func given[K, T any](know func(Knowledge, *key.Settings) (K, error),
	build func(K, Facts, *key.Settings) (T, error)) Maker[T] {
	return maker[K, T]{know, build}
}

// unaware returns a maker of what knows nothing but what jobs say of themselves.
func unaware[T any](build func(*key.Settings) (T, error)) Maker[T] {
	nothing := func(Knowledge, *key.Settings) (k struct{}, err error) { return k, nil }
	return given(nothing, func(_ struct{}, _ Facts, s *key.Settings) (T, error) { return build(s) })
}

type maker[K, T any] struct {
	know  func(Knowledge, *key.Settings) (K, error)
	build func(K, Facts, *key.Settings) (T, error)
}

// Known is the type K.
func (m maker[K, T]) Known() reflect.Type { return reflect.TypeFor[K]() }

// Make builds a system from the part of k that is a K.
func (m maker[K, T]) Make(k Knowledge, s *key.Settings) (made T, err error) {
	known, err := m.know(k, s)
	if err != nil {
		return made, err
	}
	return m.build(known, k.facts(), s)
}
