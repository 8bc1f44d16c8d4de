package local

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is how much processor time the calling thread has taken. A goroutine that compares two of them is locked
// to its thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
