//go:build linux

package procs

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Look returns the live members, in the order of their pids: whether each handles sig, and what each was given of the
// variables. It is one look at moving targets, as Members is. A member that ends meanwhile is left out. What may not be
// read of a process of another user is missing: it handles nothing and has no variable.
func (g *Group) Look(sig syscall.Signal, variables ...string) ([]Member, error) {
	found, err := g.look()
	if err != nil {
		return nil, fmt.Errorf("procs: look at group %s: %w", g.name, err)
	}
	members := make([]Member, 0, len(found))
	for _, p := range found {
		// the program comes first: handlers that are read after it are not those of one that ran before
		m := Member{PID: p.pid, Parent: p.parent, Start: p.start, Program: program(p.pid)}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		if vanished(err) {
			continue
		}
		m.describe(string(status), sig)
		m.Program = cmp.Or(m.Program, m.Name)
		m.Env = environment(p.pid, variables)
		members = append(members, m)
	}
	return members, nil
}

// Signal sends sig to the very process that was found, by a pidfd and after a look at its start time, and reports
// whether it has ended already.
func (m *Member) Signal(sig syscall.Signal) (ended bool, err error) {
	return proc{pid: m.PID, start: m.Start}.signal(sig)
}

// describe reads the file status of proc_pid_status(5).
func (m *Member) describe(status string, sig syscall.Signal) {
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":\t")
		switch key {
		case "Name":
			m.Name = value
		case "State":
			m.Stopped = strings.HasPrefix(value, "T")
		case "SigBlk", "SigCgt":
			mask, err := strconv.ParseUint(value, 16, 64)
			m.Handles = m.Handles || err == nil && mask&(1<<(sig-1)) != 0
		}
	}
}

// program returns the name of the file that a process runs; "" where that cannot be known.
func program(pid int) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(filepath.Base(path), " (deleted)")
}

// environment returns those of the variables that stand in the environment of a process, as it was when its program was
// started.
func environment(pid int, variables []string) map[string]string {
	if len(variables) == 0 {
		return nil
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil // of another user or just ended
	}
	env := make(map[string]string)
	for item := range bytes.SplitSeq(data, []byte{0}) {
		name, value, _ := strings.Cut(string(item), "=")
		for _, want := range variables {
			if name == want {
				env[name] = value
			}
		}
	}
	return env
}
