package engine

import (
	"fmt"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// begin returns the state that a log with header h starts with. If dec goes on from there, it is given what was
// remembered by then.
func begin(h eventlog.Header, dec sched.Decider, goesOn bool) (*State, error) {
	b, err := h.Beginning()
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	if b == nil {
		return NewState(h), nil
	}
	s, err := Restore(h, b.View)
	if err != nil {
		return nil, fmt.Errorf("log: state: %w", err)
	}
	if goesOn && b.Memory != nil {
		err = b.Memory.Load(s.View(), dec)
	}
	return s, err
}
