//go:build linux

package procs

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

// Ensure that a look at those who started after the group was made finds whom a look at all processes finds, whatever
// they do to hide, and takes no thread for a process and no older session for the group's own.
func TestLookSinceFindsAll(t *testing.T) {
	for _, animal := range []struct {
		kind      string
		processes int
	}{
		{"nap", 1}, {"setsid", 2}, {"orphan", 1}, {"naked", 1}, {"deaf", 2}, {"stopped", 2}, {"threads", 1},
		{"headless", 1},
	} {
		t.Run(animal.kind, func(t *testing.T) {
			eachMode(t, func(t *testing.T, g *Group, marker string) {
				reapAlways(t)
				for try := 1; !agree(t, g, marker, animal.kind, animal.processes); try++ {
					if try == 20 {
						t.Fatalf("others forked more than %d processes before each of %d looks", fewForks, try)
					}
				}
			})
		})
	}
}

// agree starts an animal under g and waits until both looks find the same, all of it. It reports false where others
// have forked so much since the group's mark that it no longer says anything, as it then never will again: the animal
// is killed, and the group has a new mark.
func agree(t *testing.T, g *Group, marker, animal string, processes int) (agreed bool) {
	t.Helper()
	g.after = Now()
	start(t, g, zoo(animal, marker, ""))
	awaitSurvivors(t, marker, processes)
	await(t, "both looks to agree", func() bool {
		_, known, err := since(g.after, g.cookie)
		if err != nil {
			t.Fatal(err)
		}
		if !known {
			return true
		}
		few, err := g.Members()
		if err != nil {
			t.Fatal(err)
		}
		all := *g
		all.after = Mark{}
		every, err := all.Members()
		if err != nil {
			t.Fatal(err)
		}
		agreed = len(few) >= processes && slices.Equal(few, every)
		return agreed
	})
	if agreed {
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if err := g.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	return false
}

// Ensure that the kernel's counts are not believed where they cannot be so: then all processes are looked at.
func TestMarkIsDoubted(t *testing.T) {
	now := Now()
	if _, near := now.near(); now.last == 0 || !near {
		t.Fatalf("%+v is not near", now)
	}
	for name, m := range map[string]Mark{
		"none":                  {},
		"pids start from below": {last: 1 << 30, forks: now.forks, ticks: now.ticks},
		"many forks":            {last: now.last, forks: now.forks - 2*fewForks, ticks: now.ticks},
		"forks to come":         {last: now.last, forks: now.forks * 2, ticks: now.ticks},
		"pids far away":         {last: 1, forks: now.forks, ticks: now.ticks},
	} {
		if name == "pids far away" && now.last < fewForks {
			continue // numbers have just started from below: it is near
		}
		if _, near := m.near(); near {
			t.Errorf("%s: taken as near", name)
		}
		all, err := scan("", m)
		if err != nil || !slices.ContainsFunc(all, func(p proc) bool { return p.pid == 1 }) {
			t.Errorf("%s: %d processes, %v, want all there are", name, len(all), err)
		}
	}
}

// Ensure that a member in a session whose leader is older than the group is found, and that the leader and others there
// are not: it is a stray that a user started with a job's environment.
func TestStrayInOlderSession(t *testing.T) {
	marker := newMarker()
	shell := exec.Command("sh")
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := shell.StdinPipe()
	must(err)
	out, err := shell.StdoutPipe()
	must(err)
	must(shell.Start())
	g := Open("", "trainyard-test-"+marker, "PROCS_TEST="+marker).After(Now())
	defer func() { _ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL); _ = shell.Wait() }()
	_, err = fmt.Fprintf(in, "%s sleep 1000 & echo $!; sleep 1000 & echo $!\n", g.cookie)
	must(err)
	var stray, other int
	if _, err = fmt.Fscan(out, &stray, &other); err != nil {
		t.Fatal(err)
	}
	await(t, "the stray alone", func() bool {
		got, bad := g.Members()
		if bad != nil {
			t.Fatal(bad)
		}
		if slices.Contains(got, other) || slices.Contains(got, shell.Process.Pid) {
			t.Fatalf("members %v, want %d alone", got, stray)
		}
		return slices.Equal(got, []int{stray})
	})
}
