package allocate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
)

// byClass is admission class by class, literally: of a class first who holds GPUs, then who waits, each let in if a
// dynamic programme over all who are in on the type has a division. Who holds GPUs is let in on his type alone. In mode
// Queue no one who waits comes in behind one who could and does not.
func (s *scene) byClass(mode elastic.Mode) (on map[sched.JobID]int, rejected []sched.JobID) {
	on = make(map[sched.JobID]int)
	part := make([][]elastic.Job, len(s.room))
	queued := false
	for class := int32(9); class >= 0; class-- {
		for _, holds := range []bool{true, false} {
			for _, j := range s.order {
				job := &s.v.Jobs[j]
				if job.Spec.Priority != class || len(job.Target) > 0 != holds || !holds && queued {
					continue
				}
				c := s.rates.claim(&s.v, j)
				t, ever := s.entry(part, job, c.Job)
				switch {
				case t >= 0:
					on[j], part[t] = t, append(part[t], c.Job)
				case holds:
				case mode == elastic.Drop && job.Attempts == 0:
					rejected = append(rejected, j)
				case mode == elastic.Queue && ever:
					queued = true
				}
			}
		}
	}
	return on, rejected
}

// entry returns the type that a job comes in on, next to those who are in, -1 = none, and whether it ever could.
func (s *scene) entry(part [][]elastic.Job, job *sched.Job, c elastic.Job) (enters int, ever bool) {
	enters, best := -1, -1
	for t := range s.room {
		ever = ever || job.Spec.Types.Has(sched.TypeID(t)) && feasible([]elastic.Job{c}, s.room[t])
		mine := job.Spec.Types.Has(sched.TypeID(t))
		if len(job.Target) > 0 {
			mine = s.v.Nodes[s.v.GPUs[job.Target[0]].Node].Spec.Type == sched.TypeID(t)
		}
		if left := s.left(part[t], t); mine && left > best &&
			feasible(append(slices.Clone(part[t]), c), s.room[t]) {
			enters, best = t, left
		}
	}
	return enters, ever
}

// Ensure that where running jobs give way to higher classes, minima come class by class, and what is left beyond them
// is divided as by the dynamic programme over all who are in, whatever their classes; in all modes, on one type and
// several.
func TestClassedAdmissionTwin(t *testing.T) {
	moved := 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 21))
		s := randomScene(r, 1+r.IntN(3))
		for j := range s.v.Jobs {
			s.v.Jobs[j].Spec.Priority = int32(r.IntN(3))
		}
		mode := elastic.Mode(r.IntN(3))
		divide := &Divide{Rates: &s.rates, Rule: &Sum{}, Admits: true, Mode: mode}
		var d sched.Desired
		grants := divide.ByClass(order.Classes{}, true).Allocate(&s.v, slices.Clone(s.room), s.order, &d, nil)
		on, rejected := s.byClass(mode)
		var dropped []sched.JobID
		for i := range d.Reject {
			dropped = append(dropped, d.Reject[i].Job)
		}
		if got, want := fmt.Sprint(widthsOf(grants), dropped), fmt.Sprint(s.divided(on), rejected); got != want {
			t.Fatalf("seed %d, mode %d: %s, want %s", seed, mode, got, want)
		}
		for j := range s.v.Jobs {
			if _, in := on[sched.JobID(j)]; !in && len(s.v.Jobs[j].Target) > 0 {
				moved++
			}
		}
	}
	if moved == 0 {
		t.Error("no running job gives way: nothing was tried")
	}
}
