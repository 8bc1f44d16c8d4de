package whatif_test

import (
	"testing"

	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/whatif"
	"github.com/trainyard/trainyard/whatif/whatiftest"
)

// Ensure that the smallest part of what was drained is found that lets a job start when it is lifted, and none where
// none does.
func TestUndrain(t *testing.T) {
	drained := func(gpus ...sched.GPUID) func(*sched.View) {
		return func(v *sched.View) {
			for _, g := range gpus {
				v.GPUs[g].State = sched.GPUWithheld
			}
		}
	}
	for _, c := range []struct {
		name    string
		gpus    int
		drain   func(*sched.View)
		lifted  []sched.GPUID
		machine bool
		found   bool
	}{
		{"one of two", 3, drained(1, 2), []sched.GPUID{1}, false, true},
		{"both", 4, drained(1, 2), []sched.GPUID{1, 2}, false, true},
		{"the machine", 4, func(v *sched.View) { v.Nodes[0].State = sched.NodeDraining }, nil, true, true},
		{"the machine and a GPU", 4, func(v *sched.View) { drained(3)(v); v.Nodes[0].State = sched.NodeDraining },
			[]sched.GPUID{3}, true, true},
		{"another has them", 4, func(v *sched.View) { v.GPUs[3].State = sched.GPUForeign }, nil, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, m := (&whatiftest.Scene{System: "fifo"}).Node(4, 0).Job(100,
				sched.JobSpec{GPUs: sched.Rigid(c.gpus), NotBef: 5e8}).Job(1,
				sched.JobSpec{GPUs: sched.Rigid(1), NotBef: 9e9}).Moment(t)
			v := *m.View()
			v.GPUs, v.Nodes, v.Jobs = append([]sched.GPU(nil), v.GPUs...), append([]sched.Node(nil), v.Nodes...),
				v.Jobs[:1]
			v.Jobs = []sched.Job{{Spec: v.Jobs[0].Spec, State: sched.Waiting, FirstStart: sched.None,
				LastStart: sched.None}}
			for g := range v.GPUs {
				v.GPUs[g] = sched.GPU{Node: v.GPUs[g].Node}
			}
			c.drain(&v)
			fresh, _, _ := w.System("fifo")
			dec, err := fresh()
			if err != nil {
				t.Fatal(err)
			}
			moment, err := whatif.NewMoment(w.Header, v, memory.Save(&v, dec), fresh)
			if err != nil {
				t.Fatal(err)
			}
			r, err := moment.Remedies(t.Context(), 0, whatif.RemedyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range r.List {
				if x.Change != whatif.Undrain {
					continue
				}
				if !c.found || x.Machine != c.machine || len(x.Drained) != len(c.lifted) || len(x.GPUs) != c.gpus {
					t.Errorf("%+v, want %v, machine %v", x, c.lifted, c.machine)
				}
				return
			}
			if c.found {
				t.Errorf("%+v: no drain to be lifted", r)
			}
		})
	}
}
