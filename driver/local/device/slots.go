package device

import (
	"context"
	"fmt"
	"time"
)

// Slots are CPU slots: places for jobs on a machine without GPUs, as many as one likes.
type Slots int

var _ Backend = Slots(0)

// List returns slot-0, slot-1, ...
func (s Slots) List(context.Context) ([]Device, error) {
	list := make([]Device, max(s, 0))
	for i := range list {
		list[i] = Device{Name: fmt.Sprintf("slot-%d", i), Type: "cpu", Index: i}
	}
	return list, nil
}

// Sample tells that the slots are there: whoever else computes on this machine does not take one.
func (s Slots) Sample(ctx context.Context) (*Sample, error) {
	list, err := s.List(ctx)
	readings := make(map[string]Reading, len(list))
	for i := range list {
		readings[list[i].Name] = Blank()
	}
	return &Sample{At: time.Now(), Readings: readings}, err
}

// Locks returns none: slots are made up by each manager.
func (Slots) Locks() string { return "" }

// Env hides the GPUs of the machine, if it has any.
func (Slots) Env([]Device) []string { return []string{"CUDA_VISIBLE_DEVICES="} }
