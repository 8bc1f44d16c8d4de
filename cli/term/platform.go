package term

import (
	"fmt"
	"runtime"
)

// OnLinux is the error of a verb that needs what only Linux has, on another system; nil on Linux.
func OnLinux(verb string) error {
	if runtime.GOOS == "linux" {
		return nil
	}
	return &CodedError{ExitRefused, fmt.Errorf("%s works on Linux alone, and this is %s; reach a machine by "+
		"--context, see `trainyard context --help`", verb, runtime.GOOS)}
}
