package scenario

import (
	"maps"
	"testing"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// Ensure that BOA, on a machine whose slots are rented to a budget, rents as many as the widths need that its plan says, runs
// jobs on slots that are rented alone, gives one a width that is worth its price, and lets all slots go when nobody needs them.
func TestBOARentsSlots(t *testing.T) {
	t.Parallel()
	const slots = 12
	app := speedup.Stages{{Size: 4, Law: speedup.Amdahl{Parallel: .5}}}
	s := newScene(t, "boa-exact", device.Slots(slots), map[string]string{"min_run": "0", "preempt_limit": "0", "information": "perfect", "restart_overhead": "0"})
	s.options.Budget = 2.001 // rounding
	s.options.Knows = system.Knowledge{Speeds: speedup.NewOracle(map[string]speedup.App{"net": app}, 1, slots),
		Mix: []speedup.Class{{Model: "net", Rate: 1. / 4, Chain: speedup.ChainOf(app, 1, slots, sched.BatchRange{})}}}
	s.run()
	jobs := s.submit(`jobs: [{name: a, count: 3, model: net, gpus: {min: 1, max: 12, default: 1}, command: [TRAINER, --steps, 40, --step-time, 50ms, --parallel, 0.5]}]`)
	last := 0
	for j := range sched.JobID(3) {
		last = max(last, s.finished(jobs+j))
		if n := len(s.slots(jobs+j, 1)); n != 3 { // 1 slot's work at a time, which takes (k+1)/2 on k
			t.Errorf("job %d ran on %d slots, want the 3 that a budget of 2 pays for", j, n)
		}
	}
	joined := make(map[sched.NodeID]bool)
	s.await(last, "all slots are let go", func(*sched.Event) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		clear(joined)
		for _, e := range s.log {
			switch e.Kind {
			case sched.NodeJoined:
				joined[e.Node] = true
			case sched.NodeLeft:
				delete(joined, e.Node)
			}
		}
		return len(joined) == 0
	})
	s.wantRented()
}

// wantRented checks that every attempt held slots only while these were rented.
func (s *scene) wantRented() {
	s.Helper()
	rented, most := make(map[sched.NodeID]bool), 0
	held := make(map[sched.JobID][]sched.GPUID)
	for i := range s.log {
		switch e := &s.log[i]; e.Kind {
		case sched.NodeJoined:
			rented[e.Node] = true
		case sched.NodeLeft:
			delete(rented, e.Node)
			for job, gpus := range held {
				for _, g := range gpus {
					if sched.NodeID(g) == e.Node {
						s.Errorf("event %d: slot %d is let go under job %d", i, e.Node, job)
					}
				}
			}
		case sched.Decided:
			if len(e.GPUs) > 0 {
				held[e.Job] = e.GPUs
			}
			for _, g := range e.GPUs {
				if !rented[sched.NodeID(g)] {
					s.Errorf("event %d: job %d is given slot %d, which is not rented: %v are", i, e.Job, g, maps.Clone(rented))
				}
			}
		case sched.AttemptEnded:
			delete(held, e.Job)
		}
		if i > 0 && s.log[i].Time > s.log[0].Time+1 {
			most = max(most, len(rented))
		}
	}
	if most == 0 {
		s.Error("nothing was rented")
	}
}
