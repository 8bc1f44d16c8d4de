package host

import (
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/sched"
)

// Signal returns the name of the signal that an exit code stands for, as shells count: 128 and its number; "" if for
// none.
func Signal(code int32) string {
	if code <= 128 || code > 128+64 {
		return ""
	}
	return unix.SignalName(syscall.Signal(code - 128))
}

// ExitText says an exit code for people.
func ExitText(code int32) string {
	name := Signal(code)
	switch {
	case name == "":
		return fmt.Sprintf("exit code %d", code)
	case name == "SIGKILL":
		return fmt.Sprintf("exit code %d (SIGKILL, by no order of the manager: the kernel kills so where memory is "+
			"short)", code)
	}
	return fmt.Sprintf("exit code %d (%s)", code, name)
}

// Failed reports whether the last attempt of the job failed, by its own fault or for want of what a start takes.
func (r *Row) Failed() bool { return r.Ended == sched.Failed || r.Failures > 0 }

// Failure says how, in words; "" if it did not.
func (r *Row) Failure() string {
	switch {
	case !r.Failed():
		return ""
	case r.Failures > 0:
		return "could not be started: " + r.Text
	case r.Text == "":
		return ExitText(r.Code)
	case strings.HasPrefix(r.Text, task.GivenUp):
		return r.Text
	case strings.HasPrefix(r.Text, task.Timeout) && r.Code == 128+int32(syscall.SIGKILL):
		return r.Text + ", it was killed after its grace"
	case strings.HasPrefix(r.Text, task.Timeout):
		return r.Text + ", " + ExitText(r.Code)
	}
	return ExitText(r.Code) + ": " + r.Text
}

// LastFailure is Failure as sentences take it.
func (r *Row) LastFailure() text.Failure {
	said := r.Failure()
	return text.Failure{Starts: r.Failures, Text: said, GivenUp: strings.HasPrefix(said, task.GivenUp)}
}
