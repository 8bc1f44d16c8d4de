package device

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Device is what a job holds: a GPU, a MIG slice of one, or a CPU slot.
type Device struct {
	Name     string      `json:"name"` // what jobs are given; of GPUs and slices the UUID
	Type     string      `json:"type"` // model; of a slice with the profile
	MemoryGB float32     `json:"memory_gb"`
	Index    int         `json:"index"`         // of the GPU, as the machine counts them
	Bus      string      `json:"bus,omitempty"` // PCI address of the GPU
	LimitW   sched.Watts `json:"limit_w,omitempty"`
	Slice    string      `json:"slice,omitempty"` // MIG profile, such as 1g.10gb; "" = a whole GPU, or a slot
}

// Backend is a way to the devices of a machine. What it returns is the caller's. Its methods may be called by anybody
// at any time.
type Backend interface {
	// List returns the devices, always in the same order.
	List(ctx context.Context) ([]Device, error)
	// Sample looks at all of them. It may take long, but should not outlive ctx by much.
	Sample(ctx context.Context) (*Sample, error)
	// Locks returns the folder of the locks of the devices, the same for all who share the machine; "" = none are
	// shared.
	Locks() string
	// Node returns the file that only those can open who may use a device; "" = none is known.
	Node(d *Device) string
	// Env returns the variables by which a job's processes find the devices they hold.
	Env(held []Device) []string
}

// Sample is one look at the devices.
type Sample struct {
	At       time.Time          `json:"at"`       // when it was complete
	Readings map[string]Reading `json:"readings"` // by name of the device
	// Partial: of a device without a reading nothing is known. Else it is not there.
	Partial bool `json:"partial,omitempty"`
}

// Unknown is the value of a number that cannot be reported.
const Unknown = -1

// Reading is what a look showed of one device. Numbers are Unknown, or not negative.
type Reading struct {
	UsedMiB  float64  `json:"used_mib"`
	Use      float64  `json:"use"` // share of the time that something ran on it, 0..1
	Watts    float64  `json:"watts"`
	Joules   float64  `json:"joules"` // a counter: energy since some instant
	Celsius  float64  `json:"celsius"`
	Throttle Throttle `json:"throttle"` // why its clock is low; 0 = it is not, or that cannot be reported
	// Display: it holds memory for a display, for which no process on the list answers.
	Display bool `json:"display"`
	// Lost says why it cannot be used until someone resets it or the machine; "" = it can.
	Lost      string    `json:"lost,omitempty"`
	Listed    bool      `json:"listed"` // Processes can be reported
	Processes []Process `json:"processes,omitempty"`
}

// Process is a process on a device. Its number is that of our own pid namespace.
type Process struct {
	PID int     `json:"pid"`
	MiB float64 `json:"mib"` // device memory, Unknown or not negative
}

// Blank returns a reading that says nothing but that the device is there.
func Blank() Reading {
	return Reading{UsedMiB: Unknown, Use: Unknown, Watts: Unknown, Joules: Unknown, Celsius: Unknown}
}

// UnmarshalJSON reads a reading; a number that is left out is Unknown.
func (r *Reading) UnmarshalJSON(b []byte) error {
	type plain Reading
	p := plain(Blank())
	err := json.Unmarshal(b, &p)
	*r = Reading(p)
	for i := range r.Processes {
		if r.Processes[i].MiB < 0 {
			r.Processes[i].MiB = Unknown
		}
	}
	return err
}

// Loose returns the memory, in MiB, for which none of the processes on the list answers that live; Unknown where that
// cannot be reported. What a process uses that is gone is loose.
func (r *Reading) Loose(gone func(pid int) bool) float64 {
	if r.UsedMiB == Unknown || r.Display {
		return Unknown
	}
	loose := r.UsedMiB
	for _, p := range r.Processes {
		switch {
		case gone(p.PID):
		case p.MiB == Unknown:
			return Unknown
		default:
			loose -= p.MiB
		}
	}
	return max(loose, 0) // lists and totals are not of the very same instant
}

// Types returns the types of devices in order of first appearance: types of GPUs are numbered so.
func Types(list []Device) (types []string) {
	for i := range list {
		if !slices.Contains(types, list[i].Type) {
			types = append(types, list[i].Type)
		}
	}
	return types
}

// Grouped returns the devices with those of a type together, in the order of types.
func Grouped(list []Device) []Device {
	types := Types(list)
	grouped := slices.Clone(list)
	slices.SortStableFunc(grouped, func(a, b Device) int {
		return slices.Index(types, a.Type) - slices.Index(types, b.Type)
	})
	return grouped
}
