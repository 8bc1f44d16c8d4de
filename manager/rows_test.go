package manager_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// Ensure that every system that rents nothing decides about real jobs of which nothing is known, also of named models,
// and that those that rent say why they do not.
func TestEveryRow(t *testing.T) {
	jobs := []sched.JobSpec{{Name: "a", Model: "m", GPUs: sched.Range{Min: 1, Want: 1, Max: 4}}}
	for _, info := range system.Table() {
		h := eventlog.Header{System: info.Name, GPUs: 4, NodeGPUs: 4, Types: []string{"slot"}}
		sys, err := manager.System(&h, system.Knowledge{})
		if info.Rents {
			if want := "system: " + info.Name + " rents nodes"; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v, want %s", info.Name, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v, want it to learn what it has to know", info.Name, err)
			continue
		}
		dec := sys.Decider
		v := &sched.View{Now: 1, ShareLimit: 1, Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 4, Pool: sched.None}}},
			GPUs: make([]sched.GPU, 4),
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

// Ensure that keys have the values of real jobs where they are not set, and go into the header.
func TestDefaults(t *testing.T) {
	given := map[string]string{"min_run": "60"}
	for name, want := range map[string]string{
		"tiresias-las": "map[keep_free:on loss_rail:on min_run:60 preempt_limit:6 priority:classes unsaved:leave]",
		"pal": "map[keep_free:on loss_rail:on min_run:60 preempt_limit:6 priority:classes stragglers:watch " +
			"unsaved:leave]",
		"packed": "map[keep_free:on loss_rail:on min_run:60 preempt_limit:6 priority:classes unsaved:leave]",
		"eaco":   "map[min_run:60 priority:classes share_memory:figures sleep:inf unsaved:leave]",
	} {
		h := eventlog.Header{System: name, GPUs: 4, NodeGPUs: 4, Settings: given}
		if _, err := manager.System(&h, system.Knowledge{}); err != nil || fmt.Sprint(h.Settings) != want {
			t.Errorf("%s: %v, %v, want %s", name, h.Settings, err, want)
		}
	}
	h := eventlog.Header{System: "gandiva", GPUs: 4, NodeGPUs: 4}
	if _, err := manager.System(&h, system.Knowledge{}); err != nil ||
		fmt.Sprint(h.Settings) != "map[priority:classes share_memory:figures]" {
		t.Errorf("gandiva: %v, %v, want the keys of all systems and of those that share alone", h.Settings, err)
	}
	if len(given) != 1 {
		t.Errorf("what was given becomes %v", given)
	}
}
