package manager

import (
	"errors"
	"fmt"
	"testing"

	"github.com/trainyard/trainyard/manager/store"
)

// Ensure that an event is quarantined for what it says, never because a disk failed when it was read.
func TestBlamed(t *testing.T) {
	for want, faults := range map[bool][]error{
		false: {nil, fmt.Errorf("manager: x: %w", fmt.Errorf("store: log: %w: disk I/O error", store.ErrUnread))},
		true:  {errors.New("log: x: line 6: seq 50, want 5"), fmt.Errorf("log: %w", store.ErrDamaged)},
	} {
		for _, fault := range faults {
			if got := blamed(fault); got != want {
				t.Errorf("%v: blamed on the log %v, want %v", fault, got, want)
			}
		}
	}
}
