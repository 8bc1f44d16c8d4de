package shim

import (
	"math"
	"os"
	"os/signal"
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
	files, _ := os.ReadDir("/proc/self/fd") // without /proc no group of processes can be held: that is told
	for _, f := range files {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// catchSignals sees to it that jobs ignore none of the signals that this process was started to ignore: what is caught is
// not passed on. The others the runtime catches.
func catchSignals() {
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGPIPE,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGCONT)
}
