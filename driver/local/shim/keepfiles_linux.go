package shim

import (
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// KeepFiles has the files that this process was started with, but for the first three, closed in the programs that it
// starts: a lock or a pipe of whoever started it would last as long as they do.
func KeepFiles() {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) != nil {
		keepListed() // before Linux 5.11
	}
}

// keepListed is KeepFiles by the list that /proc has.
func keepListed() {
	files, _ := os.ReadDir("/proc/self/fd") // without /proc no group of processes can be held: that is reported
	for _, f := range files {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
