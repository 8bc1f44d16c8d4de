package shim

import (
	"fmt"
	"log/slog"

	"github.com/trainyard/trainyard/driver/local/procs"
)

// Resources are what an attempt may take of the machine.
type Resources struct {
	CPUs   float64 `json:"cpus,omitempty"`   // processors; 0 = all
	Memory int64   `json:"memory,omitempty"` // bytes; 0 = all
	Must   bool    `json:"must,omitempty"`   // it does not run where it cannot be held to them
}

// limit holds the group to the order's limits. It returns how the attempt ends where it has to be and cannot.
func (o *Order) limit(group *procs.Group) *Over {
	if o.Limits == nil {
		return nil
	}
	err := group.Limit(procs.Limits{CPUs: o.Limits.CPUs, Memory: o.Limits.Memory})
	if err != nil && o.Limits.Must {
		return &Over{Code: 126, Text: "limits: enforced cannot be kept here: " + err.Error()}
	}
	if err != nil {
		slog.Warn("cpus and memory are not enforced", "error", err)
	}
	return nil
}

// outOfMemory says that the kernel ended a process of the group for want of memory; "" = it did not.
func (o *Order) outOfMemory(group *procs.Group) string {
	if o.Limits != nil && o.Limits.Memory > 0 {
		if used, killed := group.Memory(); killed {
			return fmt.Sprintf("out of memory: used %s of %s", gib(used), gib(o.Limits.Memory))
		}
	}
	if group.OutOfMemory() {
		return "the kernel ended it, or a process of it, for want of memory"
	}
	return ""
}

// gib writes bytes in the unit that suits them.
func gib(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
