package manager

import "github.com/trainyard/trainyard/host"

// What a manager has of package host.
type (
	Row        = host.Row
	Board      = host.Board
	Answer     = host.Answer
	WhyOptions = host.WhyOptions
	Decision   = host.Decision
)

// Errors of package host.
var (
	ErrNoJob       = host.ErrNoJob
	ErrDone        = host.ErrDone
	ErrStopped     = host.ErrStopped
	ErrNoEvent     = host.ErrNoEvent
	ErrNoDecision  = host.ErrNoDecision
	ErrLate        = host.ErrLate
	ErrOtherSystem = host.ErrOtherSystem
)

// Signal returns the name of the signal that an exit code stands for.
func Signal(code int32) string { return host.Signal(code) }
