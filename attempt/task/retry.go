package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Retries reports whether a job that failed with an exit code is to be tried again, as far as the code decides.
func (t *Task) Retries(code int) bool {
	if len(t.RetryOn) == 0 {
		return true
	}
	return slices.ContainsFunc(t.RetryOn, func(end string) bool {
		on, err := ParseEnd(end)
		return err == nil && on == code
	})
}

// ParseEnd returns the exit code of an end as Task.RetryOn names it: exit:75, or signal:KILL, which is 128 and its
// number, as shells count.
func ParseEnd(text string) (code int, err error) {
	kind, value, _ := strings.Cut(text, ":")
	switch kind {
	case "exit":
		if n, err := strconv.Atoi(value); err == nil && 1 <= n && n <= 255 && strconv.Itoa(n) == value {
			return n, nil
		}
	case "signal":
		if n := unix.SignalNum("SIG" + value); n > 0 {
			return 128 + int(n), nil
		}
	}
	return 0, fmt.Errorf("retry on %q, want exit:N from 1 to 255, or signal:NAME as in signal:KILL", short(text))
}
