package sched_test

import (
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that a node which comes back with more or fewer CPUs, or other memory, has room for what the new machine
// holds, less what its tenants use.
func TestRejoinWithOtherResources(t *testing.T) {
	for _, c := range []struct {
		name       string
		cpus, mem  float32 // of the machine that comes back
		room, full bool    // for 2 more GPUs of job 0; for 3 of an emptied node
	}{
		{"as before", 8, 80, true, true},
		{"fewer CPUs", 6, 80, true, true},
		{"too few CPUs", 4, 80, false, false},
		{"more CPUs, too little memory", 16, 50, false, false},
		{"just enough memory", 8, 60, true, true},
		{"nothing counted any more", 0, 0, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &sched.View{Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 4, CPUs: 8, MemoryGB: 80}}},
				GPUs: make([]sched.GPU, 4),
				Jobs: []sched.Job{{Spec: &sched.JobSpec{CPUs: 2, MemoryGB: 20}},
					{Spec: &sched.JobSpec{CPUs: 2, MemoryGB: 20}}}}
			l := sched.NewLedger(v)
			l.Book(1, []sched.GPUID{0})
			n := &v.Nodes[0]
			n.State = sched.NodeDown
			if !l.Refresh(0) {
				t.Fatal("the node is not known")
			}
			n.State, n.Spec.CPUs, n.Spec.MemoryGB = sched.NodeUp, c.cpus, c.mem
			if !l.Refresh(0) {
				t.Fatal("the node is not known any more")
			}
			if got := l.Room(0, 0, 2); got != c.room {
				t.Errorf("room for 2 GPUs next to 1: %v, want %v", got, c.room)
			}
			l.Release(1)
			if got := l.Room(0, 0, 3); got != c.full {
				t.Errorf("room for 3 GPUs when empty: %v, want %v", got, c.full)
			}
			fresh := sched.NewLedger(v)
			for k := 1; k <= 4; k++ {
				if got, want := l.Room(0, 0, k), fresh.Room(0, 0, k); got != want {
					t.Errorf("room for %d GPUs: %v, a new book says %v", k, got, want)
				}
			}
		})
	}
}

// Ensure that CPUs count from when the first node that counts them has joined.
func TestRejoinStartsToCount(t *testing.T) {
	v := &sched.View{Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 4}}}, GPUs: make([]sched.GPU, 4),
		Jobs: []sched.Job{{Spec: &sched.JobSpec{CPUs: 2}}}}
	l := sched.NewLedger(v)
	if l.Counted() || !l.Room(0, 0, 4) {
		t.Fatal("nothing is counted")
	}
	v.Nodes[0].Spec.CPUs = 5
	l.Refresh(0)
	if !l.Counted() || !l.Room(0, 0, 2) || l.Room(0, 0, 3) {
		t.Errorf("counted %v, room for 2 %v, for 3 %v: want 5 CPUs of 2 each", l.Counted(), l.Room(0, 0, 2),
			l.Room(0, 0, 3))
	}
}
