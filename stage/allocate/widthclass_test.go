package allocate_test

import (
	"math/rand/v2"
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

// Ensure that jobs of one width each get GPUs class by class, of a class first who holds some, as long as there are
// enough, where running jobs give way; where they do not, who holds GPUs keeps them, and the others come class by
// class.
func TestWidthsByClassTwin(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		gpus, takes := 1+r.IntN(8), r.IntN(2) == 0
		v := &sched.View{Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: gpus}}}, GPUs: make([]sched.GPU, gpus)}
		var ids, want []sched.JobID
		for used, id := 0, 0; id < 7; id++ {
			width := 1 + r.IntN(4)
			j := sched.Job{Spec: &sched.JobSpec{GPUs: sched.Rigid(width), Priority: int32(r.IntN(3))}}
			if used+width <= gpus && r.IntN(2) == 0 {
				for range width {
					j.Target = append(j.Target, sched.GPUID(used))
					used++
				}
			}
			v.Jobs, ids = append(v.Jobs, j), append(ids, sched.JobID(id))
		}
		left := gpus
		give := func(holds bool, class int32) {
			for _, id := range ids {
				j := &v.Jobs[id]
				width := int(j.Spec.GPUs.Min)
				if len(j.Target) > 0 == holds && j.Spec.Priority == class && width <= left {
					left, want = left-width, append(want, id)
				}
			}
		}
		for class := int32(2); class >= 0 && !takes; class-- {
			give(true, class)
		}
		for class := int32(2); class >= 0; class-- {
			if takes {
				give(true, class)
			}
			give(false, class)
		}
		rule := allocate.ByWidth{Wants: wantsMost{}}.ByClass(order.Classes{}, takes)
		var got []sched.JobID
		for _, g := range rule.Allocate(v, []int32{int32(gpus)}, ids, new(sched.Desired), nil) {
			got = append(got, g.Job)
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Fatalf("seed %d, running jobs give way %v: %v get GPUs, want %v", seed, takes, got, want)
		}
	}
}
