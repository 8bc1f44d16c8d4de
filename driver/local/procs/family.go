//go:build linux

package procs

// tree is one look at all processes, and who is protected in it.
type tree struct {
	all      []proc
	byPID    map[int]proc
	children map[int][]proc
	mates    map[int][]proc // by session
	caller   proc
	excepted map[int]bool // the caller and its ancestors, pid 1, and 0 for what is outside the pid namespace
}

func newTree(all []proc, caller int) *tree {
	t := &tree{
		all: all, byPID: map[int]proc{}, children: map[int][]proc{}, mates: map[int][]proc{},
		excepted: map[int]bool{0: true, 1: true},
	}
	for _, p := range all {
		t.byPID[p.pid] = p
		t.children[p.parent] = append(t.children[p.parent], p)
		t.mates[p.session] = append(t.mates[p.session], p)
	}
	t.caller = t.byPID[caller]
	for pid := caller; !t.excepted[pid]; pid = t.byPID[pid].parent {
		t.excepted[pid] = true
	}
	return t
}

// closure returns the live processes that a seed leads to, seeds included, in the order of the look: those that descend
// from one, and those of a session that belongs to the group.
func (t *tree) closure(seed func(proc) bool) []proc {
	in := map[int]bool{}
	var queue []proc
	add := func(list []proc) {
		for _, p := range list {
			if !in[p.pid] && !t.excepted[p.pid] {
				in[p.pid] = true
				queue = append(queue, p)
			}
		}
	}
	for _, p := range t.all {
		if seed(p) {
			add([]proc{p})
		}
	}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		add(t.children[p.pid])
		if t.owns(p) {
			add(t.mates[p.session])
		}
	}
	var members []proc
	for _, p := range t.all {
		if in[p.pid] && !p.zombie {
			if !t.owns(p) {
				p.group = 0
			}
			members = append(members, p)
		}
	}
	return members
}

// owns says whether the whole session of member p belongs to the group. A session is inherited, never joined, so all of
// it descends from its leader. If the leader has ended, any member vouches for it: Start put the group in sessions of
// its own. If it lives and is no member, p is a stray, such as a command that a user ran in a login shell with a job's
// environment, and the shell must not die of it. The caller's own session is never the group's.
func (t *tree) owns(p proc) bool {
	if p.session <= 1 || p.session == t.caller.session {
		return false
	}
	leader, ok := t.byPID[p.session]
	return !ok || leader.zombie || leader.pid == p.pid
}
