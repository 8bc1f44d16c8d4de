package manager_test

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// Ensure that every system decides about real jobs, also of named models, or says why it does not.
func TestEveryRow(t *testing.T) {
	jobs := []sched.JobSpec{{Name: "a", Model: "m", GPUs: sched.Range{Min: 1, Want: 1, Max: 4}, WallTime: 1e12}}
	for _, info := range system.Table() {
		h := engine.Header{System: info.Name, GPUs: 4, NodeGPUs: 4, Types: []string{"slot"}}
		sys, err := manager.System(&h, system.Knowledge{})
		dec := sys.Decider
		if err != nil {
			if why := err.Error(); !strings.HasPrefix(why, "system: "+info.Name) || !strings.Contains(why, " want") && !strings.Contains(why, "; see") {
				t.Errorf("%s: %v, want a reason and what to do", info.Name, err)
			}
			continue
		}
		v := &sched.View{Now: 1, ShareLimit: 1, Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 4, Pool: sched.None}}}, GPUs: make([]sched.GPU, 4),
			Jobs: []sched.Job{{Spec: &jobs[0], State: sched.Waiting}}}
		e := sched.Event{Time: 1, Kind: sched.JobArrived}
		dec.Observe(v, &e)
		var d sched.Desired
		dec.Decide(v, &d)
		if len(d.Jobs) == 0 {
			v.Now = 0 // systems with a round decide on its grid
			dec.Decide(v, &d)
		}
		if len(d.Jobs) == 0 {
			t.Errorf("%s gives the only job nothing", info.Name)
		}
	}
}
