package shim

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// catchSignals sees to it that jobs ignore none of the signals that this process was started to ignore: what is caught
// is not passed on. The others the runtime catches.
func catchSignals() {
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGPIPE,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGCONT)
}
