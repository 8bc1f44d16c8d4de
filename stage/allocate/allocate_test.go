package allocate_test

import (
	"slices"
	"testing"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
)

// Ensure that Quota passes over what does not fit, that Prefix stops there, and that both count each type by itself.
func TestDemandAlone(t *testing.T) {
	v := &sched.View{}
	for _, s := range []sched.JobSpec{{GPUs: sched.Rigid(2)}, {GPUs: sched.Rigid(3)}, {GPUs: sched.Rigid(1)},
		{GPUs: sched.Rigid(1)},
		{GPUs: sched.Rigid(1), Types: sched.TypeSet(0).With(1)}, {GPUs: sched.Range{Min: 1, Want: 2, Max: 8}}} {
		v.Jobs = append(v.Jobs, sched.Job{Spec: &s})
	}
	for _, c := range []struct {
		name  string
		rule  sched.Allocator
		room  []int32
		order []sched.JobID
		want  []sched.JobID
	}{
		{"quota passes over", allocate.Quota{}, []int32{4}, []sched.JobID{0, 1, 2, 3}, []sched.JobID{0, 2, 3}},
		{"prefix stops", allocate.Prefix{}, []int32{4}, []sched.JobID{0, 1, 2, 3}, []sched.JobID{0}},
		{"a gang has one type", allocate.Quota{}, []int32{2, 2}, []sched.JobID{1, 0}, []sched.JobID{0}},
		{"the type with most room", allocate.Quota{}, []int32{1, 3}, []sched.JobID{2, 4, 0}, []sched.JobID{2, 4}},
		{"only its own type", allocate.Prefix{}, []int32{9, 0}, []sched.JobID{4}, nil},
		{"what it asks for, not what it could take", allocate.Prefix{}, []int32{2}, []sched.JobID{5}, []sched.JobID{5}},
		{"nothing there", allocate.Quota{}, nil, []sched.JobID{2}, nil},
	} {
		var got []sched.JobID
		for _, g := range c.rule.Allocate(v, slices.Clone(c.room), c.order, nil, nil) {
			if want := v.Jobs[g.Job].Spec.GPUs.Want; g.GPUs != want || g.Least != want {
				t.Errorf("%s: job %d is granted %d, at least %d, want %d", c.name, g.Job, g.GPUs, g.Least, want)
			}
			got = append(got, g.Job)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: granted %v, want %v", c.name, got, c.want)
		}
	}
}

// Ensure that ByClass changes the order of what is granted, class by class and stable, and nothing else, behind what
// was there before.
func TestByClass(t *testing.T) {
	v := &sched.View{}
	for _, s := range []sched.JobSpec{{GPUs: sched.Rigid(1), Class: "cc"}, {GPUs: sched.Rigid(2), Class: "a"},
		{GPUs: sched.Rigid(1)},
		{GPUs: sched.Rigid(1), Class: "a"}, {GPUs: sched.Rigid(9)}, {GPUs: sched.Rigid(1)}} {
		v.Jobs = append(v.Jobs, sched.Job{Spec: &s})
	}
	rule := allocate.ByClass{Grants: allocate.Prefix{}, Class: func(v *sched.View, j sched.JobID) int {
		return len(v.Jobs[j].Spec.Class)
	}}
	before := []sched.Grant{{Job: 7, GPUs: 1, Least: 1}}
	var got []sched.JobID
	for _, g := range rule.Allocate(v, []int32{8}, []sched.JobID{0, 3, 2, 1, 4, 5}, nil, before) {
		if want := g.Job == 1; (g.GPUs == 2) != want || g.Least != g.GPUs {
			t.Errorf("job %d is granted %d, at least %d", g.Job, g.GPUs, g.Least)
		}
		got = append(got, g.Job)
	}
	if want := []sched.JobID{7, 2, 3, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("granted %v, want %v: the last does not fit, and holds up the one behind it", got, want)
	}
}
