package task

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// OnTime is the end of Task.RetryOn of a job whose time was over.
const OnTime = "time"

// Timeout opens the text of the end of a job whose time was over.
const Timeout = "timeout: "

// GivenUp opens the text of the end of a job that is tried no more although nothing says how it ended.
const GivenUp = "given up: "

// RetriesTimeout reports whether a job is to be tried again whose time was over: only if it says so.
func (t *Task) RetriesTimeout() bool { return slices.Contains(t.RetryOn, OnTime) }

// Times say how long attempts may take: to run, and to end.
type Times struct {
	Limit time.Duration `json:"limit,omitempty"` // 0 = none
	Warn  time.Duration `json:"warn,omitempty"`  // how long before the end of Limit it is warned
	Each  bool          `json:"each,omitempty"`  // Limit holds of each attempt, not of all together
	Grace time.Duration `json:"grace"`
}

// Times returns how long attempts of a job may take.
func (t *Task) Times() Times {
	return Times{t.TimeLimit, cmp.Or(t.TimeWarn, t.Grace), t.TimeEach || t.RetriesTimeout(), t.Grace}
}

// Of returns the times of an attempt whose job has run for so long before. A limit that was used up before is a
// nanosecond.
func (t Times) Of(ran time.Duration) Times {
	if t.Limit > 0 && !t.Each {
		t.Limit = max(t.Limit-ran, 1)
	}
	t.Warn = min(t.Warn, t.Limit)
	return t
}

// Valid reports whether t can be what Task.Times returns.
func (t Times) Valid() bool {
	return t.Limit >= 0 && t.Limit <= MaxLimit && t.Warn >= 0 && t.Grace > 0 && t.Grace <= MaxGrace
}

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
	if text == OnTime {
		return -1, nil // no exit code
	}
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
	return 0, fmt.Errorf("retry on %q, want exit:N from 1 to 255, or signal:NAME as in signal:KILL, "+
		"or time", short(text))
}
