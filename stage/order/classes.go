package order

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Classes ranks by priority, larger first, before the order of a system. A job rises by a class each time it has waited
// for Age in all, MostLifts times: where a job can never start, a simulation ends all the same. Time that it is held
// counts as well, but not before the time that it asked to start at: the class follows from what the View has of the
// job. It assumes nothing. It is ours.
type Classes struct {
	Age time.Duration // 0 = none rises
}

// MostLifts is by how many classes a job rises at most.
const MostLifts = 100

var (
	_ sched.Classer   = Classes{}
	_ sched.Explainer = Classes{}
)

// Class stays as it is while the job runs.
func (c Classes) Class(v *sched.View, id sched.JobID) (class int64, until sched.Time) {
	j := &v.Jobs[id]
	lifts, next := c.lifts(v, id)
	if until = sched.Never; next > 0 && !j.Up {
		until = v.Now.Add(next)
	}
	return int64(j.Spec.Priority) + lifts, until
}

// Alike is that all jobs are of one class.
type Alike struct{}

// Class never changes.
func (Alike) Class(*sched.View, sched.JobID) (class int64, until sched.Time) { return 0, sched.Never }

// lifts returns by how many classes job id has risen, and how long it still has to wait until it rises again; 0: it
// does not.
func (c Classes) lifts(v *sched.View, id sched.JobID) (n int64, next time.Duration) {
	if c.Age <= 0 {
		return 0, 0
	}
	j := &v.Jobs[id]
	waited := max(v.Now.Sub(max(j.Arrived, j.Spec.NotBef))-j.RunNow(v.Now), 0)
	if n = int64(waited / c.Age); n >= MostLifts {
		return MostLifts, 0
	}
	return n, c.Age*time.Duration(n+1) - waited
}

// Explain says the priority, unless it is the default, and the class, if the job has risen.
func (c Classes) Explain(v *sched.View, id sched.JobID, say func(sched.Fact)) {
	FIFO{}.Explain(v, id, say)
	lifts, next := c.lifts(v, id)
	if lifts > 0 {
		class, _ := c.Class(v, id)
		say(sched.Fact{Name: "class-by-waiting", Value: float64(class)})
	}
	if next > 0 && !v.Jobs[id].Up {
		say(sched.Fact{Name: "rises-in", Value: next.Seconds(), Unit: "s"})
	}
}
