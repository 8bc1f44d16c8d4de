package sched

import "slices"

// Mechanism is how jobs share the GPUs of a node.
type Mechanism uint8

// Mechanisms.
const (
	TimeSlicing Mechanism = iota // processes take turns, as plain sharing does
	MPS                          // kernels of several processes run at once
	MIG                          // each has a slice of the GPU for itself
	Mechanisms                   // how many there are
)

var mechanismWords = [Mechanisms]string{"time-slicing", "mps", "mig"}

// String returns the word of a known mechanism.
func (m Mechanism) String() string { return mechanismWords[m] }

// MechanismWords returns the words of all mechanisms, by number.
func MechanismWords() []string { return slices.Clone(mechanismWords[:]) }
