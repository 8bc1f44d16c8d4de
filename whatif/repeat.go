package whatif

import (
	"math"

	"github.com/trainyard/trainyard/sched"
)

// People submit the same training again and again, and what they submit together is often alike: in Philly's trace a
// third of the jobs that a user submits in a row take as long as the one before, within a tenth. Then what is not known
// of jobs in a queue is not independent: all are long, or all short.

// kind is what jobs have in common of which one may repeat the other.
type kind struct {
	user, model, class string
	gpus               int32
}

func kindOf(j *sched.Job) kind { return kind{j.Spec.User, j.Spec.Model, j.Spec.Class, j.Unit()} }

// before returns, by job of v, the one before it of its kind; None = there is none.
func before(v *sched.View) []sched.JobID {
	list, last := make([]sched.JobID, len(v.Jobs)), make(map[kind]sched.JobID)
	for i := range v.Jobs {
		k := kindOf(&v.Jobs[i])
		list[i] = sched.None
		if b, ok := last[k]; ok {
			list[i] = b
		}
		last[k] = sched.JobID(i)
	}
	return list
}

// nearly is by how much the logarithms of two works may differ that are taken for the same.
const nearly = 0.1

// learnRepeat returns how often jobs of v that finished took as long as the one before them of their kind, beyond how
// often they took as long as the last before them of another kind. Few pairs say little: they count next to ten of
// which two did, somewhat fewer than in the published traces.
func learnRepeat(v *sched.View) float64 {
	var same, pairs, alike, others float64
	last := [2]sched.JobID{sched.None, sched.None} // that finished: the last, and the last of another kind than that
	for i, b := range before(v) {
		id := sched.JobID(i)
		if !finished(v, id) {
			continue
		}
		if b != sched.None && finished(v, b) {
			pairs, same = pairs+1, same+near(v, id, b)
		}
		other := last[0]
		if other != sched.None && kindOf(v.Job(other)) == kindOf(v.Job(id)) {
			other = last[1]
		}
		if other != sched.None {
			others, alike = others+1, alike+near(v, id, other)
		}
		if last[0] == sched.None || kindOf(v.Job(last[0])) != kindOf(v.Job(id)) {
			last[1] = last[0]
		}
		last[0] = id
	}
	const known, did = 10, 2
	chance := min(alike/max(others, 1), 0.99)
	return min((max(same-chance*pairs, 0)/(1-chance)+did)/(pairs+known), 1)
}

func finished(v *sched.View, j sched.JobID) bool {
	job := v.Job(j)
	return job.State == sched.Done && job.Outcome == sched.Finished && Measured(v, job) > 0
}

// near is 1 if two jobs that finished took about as long, else 0.
func near(v *sched.View, a, b sched.JobID) float64 {
	if math.Abs(math.Log(Measured(v, v.Job(a)).Seconds()/Measured(v, v.Job(b)).Seconds())) <= nearly {
		return 1
	}
	return 0
}
