//go:build linux

package procs

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Mark is a moment, by what the kernel counts: who was forked later has a pid after that of then, until pids start from
// below again. A group whose processes all started after a mark is found by looking at those alone. The zero value
// is no moment.
type Mark struct {
	last  int    // the pid that was given last
	forks uint64 // processes and threads since boot
	ticks uint64 // clock ticks since boot, one less than were shown
}

// Now returns the present moment, no moment if the kernel does not say.
func Now() Mark {
	m := Mark{forks: forks()}
	m.last, _ = strconv.Atoi(lastPID())
	var since unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &since) != nil || m.last <= 0 || m.forks == 0 {
		return Mark{}
	}
	m.ticks = max(uint64(time.Duration(since.Nano())/tick), 1) - 1
	return m
}

// fewForks is up to how many pids since a mark are looked at one by one. Beyond, all processes are: that takes as long,
// and pids may have started from below in between.
const fewForks = 2048

// near returns the pid that was given last, and whether all who were forked since m have pids after m.last up to that.
func (m Mark) near() (last int, yes bool) {
	if m.last == 0 {
		return 0, false
	}
	n := forks()
	last, err := strconv.Atoi(lastPID()) // read after the count: whoever is not counted has a pid up to it all the same
	return last, err == nil && n >= m.forks && n-m.forks <= fewForks && last >= m.last && last-m.last <= fewForks
}

// forks returns how many processes and threads the kernel has made since boot; 0 = it does not say.
func forks() uint64 {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(data), "\nprocesses ")
	count, _, _ := strings.Cut(after, "\n")
	n, _ := strconv.ParseUint(count, 10, 64)
	return n
}

// since looks at the processes that were forked after m, at the caller and its ancestors, and at those that lead the
// sessions of any of them. It reports false where it cannot know that these are all.
func since(m Mark, cookie string) (all []proc, known bool, err error) {
	last, near := m.near()
	if !near {
		return nil, false, nil
	}
	t := table{after: m, seen: make(map[int]bool)}
	for pid := m.last + 1; pid <= last; pid++ {
		if leads(pid) {
			t.add(pid, cookie)
		}
		if pid == last { // who was forked meanwhile
			if last, near = m.near(); !near {
				return nil, false, nil
			}
		}
	}
	for pid := os.Getpid(); pid > 1 && !t.seen[pid] && t.err == nil; {
		pid = t.add(pid, "").parent
	}
	for _, p := range t.all {
		if p.session > 1 && !t.seen[p.session] {
			t.add(p.session, "")
		}
	}
	return t.all, t.err == nil, t.err
}

// table is processes that were looked at one by one.
type table struct {
	after Mark
	seen  map[int]bool
	all   []proc
	err   error // the first
}

// add looks at a process, if it is there.
func (t *table) add(pid int, cookie string) (p proc) {
	t.seen[pid] = true
	p, err := inspect(pid, cookie, t.after)
	switch {
	case err == nil:
		t.all = append(t.all, p)
	case !vanished(err) && t.err == nil:
		t.err = err
	}
	return p
}

// leads reports whether a pid is that of a process, and not of another thread of one.
func leads(pid int) bool {
	number := strconv.Itoa(pid)
	data, err := os.ReadFile("/proc/" + number + "/status")
	if err != nil {
		return false
	}
	_, after, found := strings.Cut(string(data), "\nTgid:\t")
	group, _, _ := strings.Cut(after, "\n")
	return !found || group == number
}
