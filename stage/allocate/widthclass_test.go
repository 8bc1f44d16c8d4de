package allocate_test

import (
	"slices"
	"testing"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/order"
)

// wantsMost has each job be as wide as it can be, or narrower.
type wantsMost struct{}

func (wantsMost) Want(v *sched.View, j sched.JobID) (int32, sched.Config) {
	return v.Jobs[j].Spec.GPUs.Max, sched.Config{}
}

func (wantsMost) Narrower(v *sched.View, j sched.JobID, gpus int32) (sched.Config, bool) {
	return sched.Config{}, gpus >= v.Jobs[j].Spec.GPUs.Min
}

// Ensure that no holder of a lower class is stopped for a newcomer that waits for nodes to boot: it would idle.
func TestNoOneIsStoppedForWhoWaits(t *testing.T) {
	holder := sched.JobSpec{GPUs: sched.Rigid(4)}
	newcomer := sched.JobSpec{GPUs: sched.Range{Min: 1, Want: 8, Max: 8}, Priority: 1}
	v := &sched.View{Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 4}}}, GPUs: make([]sched.GPU, 4),
		Jobs: []sched.Job{{Spec: &holder, Target: []sched.GPUID{0, 1, 2, 3}}, {Spec: &newcomer}}}
	for soon, want := range map[bool]sched.JobID{false: 1, true: 0} {
		rule := allocate.ByWidth{Wants: wantsMost{}, Soon: func(*sched.View) bool { return soon }}.
			ByClass(order.Classes{}, true)
		var got []sched.JobID
		for _, g := range rule.Allocate(v, []int32{4}, []sched.JobID{0, 1}, new(sched.Desired), nil) {
			if g.GPUs != 4 {
				t.Errorf("nodes boot: %v, %+v, want 4 GPUs", soon, g)
			}
			got = append(got, g.Job)
		}
		if !slices.Equal(got, []sched.JobID{want}) {
			t.Errorf("nodes boot: %v, granted %v, want %v", soon, got, want)
		}
	}
}
