// Package devices names the GPUs of machines as resource claims do.
package devices

// ID is how claims name a device.
type ID struct{ Driver, Pool, Name string }

// Device is one GPU of a machine.
type Device struct {
	UUID      string // "" where it is not known
	ID        ID
	Shareable bool // several claims may have it at once
	Tainted   bool // no job may be given it now
}
