package scenario

import (
	"fmt"
	"maps"
	"testing"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// Ensure that BOA, on a machine whose slots are rented to a budget, rents as many as the widths need that its plan
// says, runs jobs on slots that are rented alone, gives one a width that is worth its price, and lets all slots go when
// no one needs them.
func TestBOARentsSlots(t *testing.T) {
	t.Parallel()
	s := renting(t).run()
	jobs := s.submit(`jobs: [{name: a, count: 3, model: net, gpus: {min: 1, max: 12, default: 1}, command: [TRAINER, ` +
		`--steps, 40, --step-time, 50ms, --parallel, 0.5]}]`)
	last := 0
	for j := range sched.JobID(3) {
		last = max(last, s.finished(jobs+j))
		if n := len(s.slots(jobs+j, 1)); n != 3 {
			t.Errorf("job %d ran on %d slots, want the 3 that a budget of 2 pays for", j, n)
		}
	}
	s.allLetGo(last)
	s.wantRented()
}

// Ensure that a manager that comes back knows which slots are offered: a job that ran meanwhile keeps them, another
// gets others, and in the end none is offered.
func TestBOAComesBack(t *testing.T) {
	t.Parallel()
	s := renting(t).run()
	const waiting = "model: net, gpus: {min: 1, max: 12, default: 1}, command: "
	a := s.submit("jobs: [{name: a, " + waiting + until("go") + "}]")
	s.started(a, 1)
	s.stop()
	s.run()
	b := s.submit("jobs: [{name: b, " + waiting + until("go") + "}]")
	s.started(b, 1)
	s.let("go")
	s.allLetGo(max(s.finished(a), s.finished(b)))
	s.wantRented()
	if x, y := s.slots(a, 1), s.slots(b, 1); fmt.Sprint(x, y) != "[slot-0 slot-1 slot-2] [slot-3 slot-4 slot-5]" {
		t.Errorf("they ran on %v and %v, want three slots each", x, y)
	}
}

// renting is a scene of slots to be rented, for jobs of which half runs in parallel: k slots take (k+1)/2 times the
// slot-seconds of one, and one slot's work arrives.
func renting(t *testing.T) *scene {
	t.Helper()
	const slots = 12
	app := speedup.Stages{{Size: 4, Law: speedup.Amdahl{Parallel: .5}}}
	s := newScene(t, "boa-exact", device.Slots(slots),
		map[string]string{"min_run": "0", "preempt_limit": "0", "information": "perfect", "restart_overhead": "0"})
	s.options.Budget = 2.001 // rounding
	s.options.Knows = system.Knowledge{Speeds: speedup.NewOracle(map[string]speedup.App{"net": app}, 1, slots),
		Mix: []speedup.Class{{Model: "net", Rate: 1. / 4, Chain: speedup.ChainOf(app, 1, slots, sched.BatchRange{})}}}
	return s
}

// allLetGo waits, from an event on, until no slot is offered.
func (s *scene) allLetGo(from int) {
	s.Helper()
	joined := make(map[sched.NodeID]bool)
	s.await(from, "all slots are let go", func(*sched.Event) bool {
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
}

// wantRented checks that every attempt held slots only while these were rented.
func (s *scene) wantRented() {
	s.Helper()
	rented, most := make(map[sched.NodeID]bool), 0
	held := make(map[sched.JobID][]sched.GPUID)
	log := s.events()
	for i := range log {
		switch e := &log[i]; e.Kind {
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
					s.Errorf("event %d: job %d is given slot %d, which is not rented: %v are", i, e.Job, g,
						maps.Clone(rented))
				}
			}
		case sched.AttemptEnded:
			delete(held, e.Job)
		}
		if i > 0 && log[i].Time > log[0].Time+1 {
			most = max(most, len(rented))
		}
	}
	if most == 0 {
		s.Error("nothing was rented")
	}
}
