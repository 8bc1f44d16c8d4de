//go:build linux

package procs

import (
	"slices"
	"testing"
)

// Ensure that membership passes to descendants and sessions, and stops at the caller, its ancestors and strangers.
func TestClosure(t *testing.T) {
	const caller = 50
	// A manager (40, in the login session 30) with a shim (50) that leads its own session.
	around := []proc{
		{pid: 1, session: 1}, {pid: 30, parent: 1, session: 30}, {pid: 40, parent: 30, session: 30},
		{pid: caller, parent: 40, session: caller}, {pid: 60, parent: 40, session: 60},
	}
	for _, c := range []struct {
		name string
		with []proc
		want []int
	}{
		{"no seed", []proc{{pid: 70, parent: 60, session: 60}}, nil},
		{"descendants of a marked process, whatever their pids", []proc{
			{pid: 12, parent: 11, session: 12}, {pid: 11, parent: 70, session: 11},
			{pid: 70, parent: 1, session: 70, marked: true},
		}, []int{12, 11, 70}},
		{"zombies are none, but lead on", []proc{
			{pid: 70, parent: 1, session: 70, marked: true, zombie: true}, {pid: 71, parent: 70, session: 70},
		}, []int{71}},
		{"the session of a member that leads it", []proc{
			{pid: 70, parent: 1, session: 70, marked: true}, {pid: 71, parent: 1, session: 70},
		}, []int{70, 71}},
		{"the session of a leader that is gone", []proc{
			{pid: 71, parent: 1, session: 70, marked: true}, {pid: 72, parent: 1, session: 70},
			{pid: 73, parent: 72, session: 73},
		}, []int{71, 72, 73}},
		{"the session of a leader that is a zombie", []proc{
			{pid: 70, parent: 60, session: 70, zombie: true}, {pid: 71, parent: 1, session: 70, marked: true},
			{pid: 72, parent: 1, session: 70},
		}, []int{71, 72}},
		{"not the login session in which a user copied the environment", []proc{
			{pid: 70, parent: 1, session: 70}, {pid: 71, parent: 70, session: 70, marked: true},
			{pid: 72, parent: 70, session: 70},
		}, []int{71}},
		{"not the caller's session", []proc{
			{pid: 71, parent: 1, session: caller, marked: true}, {pid: 72, parent: 1, session: caller},
		}, []int{71}},
		{"not the session 0 of processes that came from outside a container", []proc{
			{pid: 71, parent: 0, session: 0, marked: true}, {pid: 72, parent: 0, session: 0},
		}, []int{71}},
		{"a marked parent of the caller", []proc{
			{pid: 40, parent: 30, session: 30, marked: true}, {pid: 30, parent: 1, session: 30, marked: true},
			{pid: 1, marked: true}, {pid: caller, parent: 40, session: caller, marked: true},
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := slices.DeleteFunc(slices.Clone(around), func(p proc) bool {
				return slices.ContainsFunc(c.with, func(q proc) bool { return q.pid == p.pid })
			})
			tree := newTree(append(all, c.with...), caller)
			got := pidsOf(tree.closure(func(p proc) bool { return p.marked }))
			if !slices.Equal(got, c.want) {
				t.Errorf("members %v, want %v", got, c.want)
			}
		})
	}
}

// Ensure that a process group may be signalled as one only where its session is the group's.
func TestClosureKeepsProcessGroups(t *testing.T) {
	tree := newTree([]proc{
		{pid: 50, parent: 1, session: 50},
		{pid: 70, parent: 1, session: 70, group: 70, marked: true},
		{pid: 80, parent: 1, session: 80, group: 80}, {pid: 81, parent: 80, session: 80, group: 81, marked: true},
	}, 50)
	got := tree.closure(func(p proc) bool { return p.marked })
	if len(got) != 2 || got[0].group != 70 || got[1].group != 0 {
		t.Errorf("members %+v, want group 70 of 70, and none of 81", got)
	}
}
