package serve

import "golang.org/x/sys/unix"

// steered reports whether the clock is kept right by some service, as far as the kernel says.
func steered() bool {
	var x unix.Timex
	state, err := unix.Adjtimex(&x)
	return err != nil || state != unix.TIME_ERROR
}
