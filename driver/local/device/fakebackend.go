package device

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// Fake are devices that a test has in its hand. They answer like GPUs that no one uses until the test says otherwise.
type Fake struct {
	mu       sync.Mutex
	list     []Device
	readings map[string]Reading
	err      error
	hang     chan struct{} // closed once samples answer again; nil = they do
}

var _ Backend = (*Fake)(nil)

// NewFake returns fake devices, idle.
func NewFake(list ...Device) *Fake {
	f := &Fake{list: list, readings: make(map[string]Reading)}
	for i := range list {
		f.readings[list[i].Name] = Reading{Joules: Unknown, Listed: true}
	}
	return f
}

// Set gives a device another reading.
func (f *Fake) Set(name string, r Reading) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readings[name] = r
}

// Lose takes a device away: samples do not show it. Set brings it back.
func (f *Fake) Lose(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readings, name)
}

// Add plugs a device in, idle.
func (f *Fake) Add(d Device) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, d)
	f.readings[d.Name] = Reading{Joules: Unknown, Listed: true}
}

// Fail has samples fail with err; nil = they do not.
func (f *Fake) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// Hang has samples answer no more, not even to the end of their context, until the returned function is called.
func (f *Fake) Hang() (answer func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hang := make(chan struct{})
	f.hang = hang
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.hang = nil
		close(hang)
	}
}

// List returns the devices.
func (f *Fake) List(context.Context) ([]Device, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list), nil
}

// Sample returns the readings.
func (f *Fake) Sample(context.Context) (*Sample, error) {
	f.mu.Lock()
	hang := f.hang
	f.mu.Unlock()
	if hang != nil {
		<-hang
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return &Sample{At: time.Now(), Readings: maps.Clone(f.readings)}, f.err
}

// Locks returns none.
func (*Fake) Locks() string { return "" }

// Node returns none.
func (*Fake) Node(*Device) string { return "" }

// Env returns nothing.
func (*Fake) Env([]Device) []string { return nil }
