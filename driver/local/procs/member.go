package procs

import "time"

// tick is in what the kernel counts when processes start.
const tick = time.Second / 100

// Member is a live process of a group, as a look found it. PID and Start name it for good: pids are used again.
type Member struct {
	PID, Parent int
	Start       uint64 // clock ticks since boot
	// Name is what the process calls itself, at most 15 bytes of any kind; Program is the last part of the path of the
	// file that it runs, Name where that cannot be known. Of a script Program is the interpreter.
	Name, Program string
	Handles       bool // it has a handler for the signal asked about, or blocks it, as who waits for it does
	Stopped       bool // by a signal
	// Env has those of the variables asked for that stand in the environment in which its program was started.
	Env map[string]string
}

// SinceBoot returns how long after the boot of the machine the process was started, exact to 10 ms.
func (m *Member) SinceBoot() time.Duration { return time.Duration(m.Start) * tick }
