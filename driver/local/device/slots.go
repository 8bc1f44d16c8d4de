package device

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"time"
)

// Slots are CPU slots: places for jobs on a machine without GPUs, as many as one likes.
type Slots int

var _ Backend = Slots(0)

// SlotType is the type of slots.
const SlotType = "cpu"

// List returns slot-0, slot-1, ...
func (s Slots) List(context.Context) ([]Device, error) {
	list := make([]Device, max(s, 0))
	for i := range list {
		list[i] = Device{Name: fmt.Sprintf("slot-%d", i), Type: SlotType, Index: i}
	}
	return list, nil
}

// Sample says that the slots are there: whoever else computes on this machine does not take one.
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

// Node returns none.
func (Slots) Node(*Device) string { return "" }

// Env hides the GPUs of the machine, if it has any.
func (Slots) Env([]Device) []string { return []string{"CUDA_VISIBLE_DEVICES="} }

// HostSlots are the CPU slots of this machine. Each has its share of the machine's memory, so that it can be reported
// which jobs fit on one together: eaco shares no device of which it does not know the memory. No one watches that a job
// keeps to it.
type HostSlots struct {
	Slots
	MemoryGB float32 // of each; 0 = unknown
}

var _ Backend = HostSlots{}

// Host returns n slots of this machine.
func Host(n int) HostSlots {
	b, _ := os.ReadFile("/proc/meminfo") // without it the memory is unknown
	return HostSlots{Slots(n), shareOf(string(b), n)}
}

// shareOf returns the n-th part of a machine's memory by its /proc/meminfo, in tenths of GiB rounded down; 0 = it does
// not say.
func shareOf(meminfo string, n int) float32 {
	for line := range strings.Lines(meminfo) {
		var kib float64
		if _, err := fmt.Sscanf(line, "MemTotal: %f kB", &kib); err == nil && kib > 0 && n > 0 {
			return float32(math.Floor(kib/(1<<20)/float64(n)*10) / 10)
		}
	}
	return 0
}

// List is that of Slots, with memory.
func (h HostSlots) List(ctx context.Context) ([]Device, error) {
	list, err := h.Slots.List(ctx)
	for i := range list {
		list[i].MemoryGB = h.MemoryGB
	}
	return list, err
}
