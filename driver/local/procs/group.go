//go:build linux

package procs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Group is the processes of one attempt. Its methods may be called from several goroutines, but who calls Kill while
// another calls Start cannot know whether the new process is dead.
type Group struct {
	name   string
	cookie string
	dir    string // its cgroup, "" for none
	// killFile takes one write that kills the whole cgroup. Kernels before 5.14 do not have it.
	killFile string
	after    Mark // all its processes started later
	// adopts: descendants of this process are members. Only in the process that made a group without a cgroup.
	adopts bool
	limits *limiter       // nil = none
	below  map[int]uint64 // start times of others whose descendants are members, by pid
}

// New makes the group of an attempt, empty. The name is unique under root, and names a directory. The cookie, a
// NAME=VALUE, is put in the environment of all its processes and must be another for each attempt; it should not be in
// the caller's own. Root is a directory that Root returned, or "" for a group without a cgroup.
//
// Without a cgroup everything that descends from the calling process is a member, so that process makes one group only
// and starts nothing else; it should have called Subreap before.
func New(root, name, cookie string) (*Group, error) {
	if !validName(name) {
		return nil, fmt.Errorf("procs: group name %q, want that of a file", name)
	}
	if key, _, ok := strings.Cut(cookie, "="); !ok || key == "" || strings.Contains(cookie, "\x00") {
		return nil, fmt.Errorf("procs: cookie %q, want NAME=VALUE", cookie)
	}
	g := Open(root, name, cookie).After(Now())
	g.adopts = root == ""
	if g.dir != "" {
		if err := os.Mkdir(g.dir, 0o755); err != nil {
			return nil, fmt.Errorf("procs: make group %s: %w", name, err)
		}
	}
	return g, nil
}

// Open returns a group that another process made with the same arguments, perhaps long ago. It never fails: a group
// that is gone has no members. It is for cleaning up after a maker that died; without a cgroup, see the package's
// comment for what only the maker can find.
func Open(root, name, cookie string) *Group {
	g := &Group{name: name, cookie: cookie}
	if root != "" && validName(name) {
		g.dir = filepath.Join(root, name)
		g.killFile = filepath.Join(g.dir, "cgroup.kill")
	}
	return g
}

// After returns g, whose processes are known to have started after a moment: looks at it then cost what started since,
// not what else runs.
func (g *Group) After(m Mark) *Group {
	g.after = m
	return g
}

// Below makes the descendants of some processes members, for as long as these live, but not them themselves: such as
// those of the shim that runs an attempt, where another process is to end it. These may be older than the moment of
// After, so all that runs is looked at.
func (g *Group) Below(shims []Member) {
	g.after = Mark{}
	g.below = make(map[int]uint64, len(shims))
	for i := range shims {
		g.below[shims[i].PID] = shims[i].Start
	}
}

func validName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00\n")
}

// Start starts the command as a member: in a session of its own, born inside the cgroup, with the cookie in its
// environment. Nothing kills it when the caller dies. Other fields of cmd.SysProcAttr are kept, less Setpgid, which a
// new session implies. The caller calls cmd.Wait.
func (g *Group) Start(cmd *exec.Cmd) error {
	attr := &syscall.SysProcAttr{}
	if cmd.SysProcAttr != nil {
		*attr = *cmd.SysProcAttr
	}
	attr.Setsid, attr.Setpgid = true, false
	if g.dir != "" {
		dir, err := os.Open(g.dir)
		if err != nil {
			return fmt.Errorf("procs: start in group %s: %w", g.name, err)
		}
		defer dir.Close()
		attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
	}
	cmd.SysProcAttr = attr
	cmd.Env = append(cmd.Environ(), g.cookie)
	start := cmd.Start
	if g.limits != nil {
		start = func() error { return g.limits.start(cmd) }
	}
	err := start()
	attr.UseCgroupFD, attr.CgroupFD = false, 0 // the descriptor's number will be another file's
	if err != nil {
		return fmt.Errorf("procs: start in group %s: %w", g.name, err)
	}
	return nil
}

// Signal sends sig once to every member that one look finds, so that a wrapper such as `bash -c` does not swallow it.
// SIGTERM is followed by SIGCONT, so that stopped members hear it. A process forked meanwhile may not hear it. A group
// without members is no error.
func (g *Group) Signal(sig syscall.Signal) error {
	members, err := g.look()
	if err == nil {
		err = sendAll(members, sig)
		if sig == syscall.SIGTERM {
			err = errors.Join(err, sendAll(members, syscall.SIGCONT))
		}
	}
	if err != nil {
		return fmt.Errorf("procs: signal group %s: %w", g.name, err)
	}
	return nil
}

// Members returns the pids of the live members, ascending, zombies not counted. It is one look at moving targets: of a
// group that forks, it may miss some, and what it returns may have ended.
func (g *Group) Members() ([]int, error) {
	members, err := g.look()
	if err != nil {
		return nil, fmt.Errorf("procs: members of group %s: %w", g.name, err)
	}
	return pidsOf(members), nil
}

// Kill kills every member, and returns when none is left. When ctx ends before, it returns an error that wraps the
// context's and names the pids left: such as wait in the kernel for a disk that does not answer, or those of another
// user. It kills at least once, whatever ctx. Without a cgroup it stops members before, so that they do not fork. It
// leaves zombies, also those of which the caller is the parent.
func (g *Group) Kill(ctx context.Context) error {
	inside, err := g.inCgroup()
	if err == nil && inside[os.Getpid()] {
		return fmt.Errorf("procs: kill group %s: the caller is a member", g.name)
	}
	gone := vanishing{}
	for wait := time.Millisecond; ; wait = min(2*wait, 10*time.Millisecond) {
		before := lastPID()
		members, err := g.round(ctx)
		if err == nil && gone.after(len(members), before != "" && before == lastPID()) {
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return g.unfinished(ctx, err)
		}
	}
}

// vanishing counts how often in a row no member was found.
type vanishing struct{ empty, calm int }

// after adds a look and says whether the group is surely gone. One empty look is no proof. (1) A process is created
// with a pid that the look has passed, and its parent ends before the look comes to it; so the looks count when nothing
// was forked meanwhile. (2) In the middle of an exec a process shows an empty environment; so two are wanted. On a
// machine that never stops forking, for other reasons mostly, twenty in a row have to do, a third of a second.
func (v *vanishing) after(members int, calm bool) bool {
	if members > 0 {
		*v = vanishing{}
		return false
	}
	v.empty++
	if calm {
		v.calm++
	}
	return v.calm >= 2 || v.empty >= 20
}

// round kills the members there are and returns them. First they are held: who is killed loses its children to another
// parent, so a child born between look and kill would be harder to find again.
func (g *Group) round(ctx context.Context) ([]proc, error) {
	members, err := g.hold(ctx)
	if g.dir == "" {
		return members, errors.Join(err, catch(members, syscall.SIGKILL))
	}
	return members, errors.Join(err, g.killCgroup(), catch(members, syscall.SIGKILL))
}

// hold keeps members from forking, where the kernel does not kill them all at once, and returns them.
func (g *Group) hold(ctx context.Context) ([]proc, error) {
	if g.dir == "" {
		return g.stop(ctx)
	}
	if _, err := os.Stat(g.killFile); removed(err) {
		if err := write1(filepath.Join(g.dir, "cgroup.freeze")); err != nil && !removed(err) {
			return nil, err
		}
	}
	return g.look()
}

// stop stops members until a look finds none that was not stopped before. Who forks faster than that, or is woken by
// others, meets the next round.
func (g *Group) stop(ctx context.Context) ([]proc, error) {
	const passes = 20 // each finds what was forked during the last: one or two are usual, five are a fork bomb
	stopped := map[proc]bool{}
	for pass := 0; ; pass++ {
		members, err := g.look()
		if err != nil {
			return nil, err
		}
		var fresh []proc
		for _, p := range members {
			id := proc{pid: p.pid, start: p.start}
			if !stopped[id] {
				stopped[id] = true
				fresh = append(fresh, p)
			}
		}
		if len(fresh) == 0 || pass == passes || ctx.Err() != nil {
			return members, nil
		}
		if err := catch(fresh, syscall.SIGSTOP); err != nil {
			return members, nil //nolint:nilerr // who may not be stopped may not be killed, and that error is returned
		}
	}
}

// killCgroup kills what is in the cgroup, where the kernel can, and returns an error while a process lives there.
func (g *Group) killCgroup() error {
	err := write1(g.killFile)
	if err != nil && !removed(err) {
		return err
	}
	alive, err := populated(g.dir)
	if alive {
		err = errors.New("processes in the cgroup")
	}
	return err
}

// unfinished returns the error of Kill when ctx ended, or nil if the members ended just now.
func (g *Group) unfinished(ctx context.Context, err error) error {
	members, lookErr := g.look()
	if err = errors.Join(err, lookErr); err != nil {
		return fmt.Errorf("procs: kill group %s: %w, pids left %v: %w", g.name, context.Cause(ctx), pidsOf(members),
			err)
	}
	if len(members) > 0 {
		return fmt.Errorf("procs: kill group %s: %w, pids left %v", g.name, context.Cause(ctx), pidsOf(members))
	}
	return nil
}

// look returns the members that one look at /proc finds. Those in the cgroup were there before and after it: if a pid
// passed to another process in between, either that one is a member too, or signal sees another start time.
func (g *Group) look() ([]proc, error) {
	before, err := g.inCgroup()
	if err != nil {
		return nil, err
	}
	all, err := scan(g.cookie, g.after)
	if err != nil {
		return nil, err
	}
	after, err := g.inCgroup()
	if err != nil {
		return nil, err
	}
	self := os.Getpid()
	t := newTree(all, self)
	return t.closure(func(p proc) bool {
		return p.marked || before[p.pid] && after[p.pid] || g.adopts && p.parent == self || g.isBelow(t.byPID[p.parent])
	}), nil
}

// isBelow reports whether what descends from p is a member, see Below.
func (g *Group) isBelow(p proc) bool {
	start, found := g.below[p.pid]
	return found && start == p.start
}

func (g *Group) inCgroup() (map[int]bool, error) {
	if g.dir == "" {
		return nil, nil
	}
	return pidsIn(g.dir)
}

// Close removes the cgroup and those the job made in it. It may be called again. Live members are an error; zombies are
// not.
func (g *Group) Close() error {
	if g.limits != nil {
		g.limits.close()
	}
	if g.dir == "" {
		return nil
	}
	if err := removeAll(g.dir); err != nil {
		return fmt.Errorf("procs: close group %s: %w", g.name, err)
	}
	return nil
}

// sendAll sends sig to each member that still lives.
func sendAll(members []proc, sig syscall.Signal) error {
	var errs []error
	for _, p := range members {
		_, err := p.signal(sig)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// catch is sendAll for processes that fork and end at once: where the member has ended already, its process group is
// signalled instead, which the kernel does in one step, whoever is in it by then. A number seen a millisecond ago is
// not another group's, unless all pids were used in between.
func catch(members []proc, sig syscall.Signal) error {
	var errs []error
	for _, p := range members {
		ended, err := p.signal(sig)
		if ended && p.group > 1 && p.group != syscall.Getpgrp() {
			if err = syscall.Kill(-p.group, sig); vanished(err) {
				err = nil
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func pidsOf(members []proc) []int {
	pids := make([]int, len(members))
	for i, p := range members {
		pids[i] = p.pid
	}
	return pids
}
