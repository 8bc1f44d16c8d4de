package shim

import (
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// reapEvery is how long a process whose end went unnoticed may stay a zombie.
const reapEvery = time.Second

// reap collects the ends of the processes that became children of the shim because who started them is gone. That of
// the job's own process, main, is left to whoever waits for it. It ends with the shim: those who are killed last are as
// many as those before.
func reap(main int) {
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, unix.SIGCHLD)
	tick := time.NewTicker(reapEvery)
	for {
		select {
		case <-ends:
		case <-tick.C:
		}
		for _, pid := range children() {
			if pid != main {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // one that lives is left alone
			}
		}
	}
}

// children returns the child processes of this one, as /proc/self/task/TID/children lists them.
func children() (pids []int) {
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is right
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // the thread is gone
		}
		for _, word := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
