package place

import "github.com/trainyard/trainyard/sched"

var (
	_ sched.Explainer = PAL{}
	_ sched.Explainer = PMFirst{}
)

// Explain says the class of the job, the score of what it is to hold, and what being spread costs it.
func (a PAL) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	a.Scores.Explain(v, j, say)
	spec := v.Jobs[j].Spec
	of := a.Penalty(v, j, int(spec.GPUs.Want))
	say(sched.Fact{Name: "locality-penalty", Value: of[len(of)-1]})
}

// Explain says the class of the job and the score of what it is to hold.
func (f PMFirst) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	f.Scores.Explain(v, j, say)
}

// Explain says the class of the job, from A on, and the score of the slowest GPU that it is to hold.
func (s *Scores) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	class := s.Class(v, j)
	say(sched.Fact{Name: "class", Text: string(rune('A' + class))})
	if set := v.Jobs[j].Target; len(set) > 0 {
		say(sched.Fact{Name: "slowest-score", Value: s.Slowest(class, set)})
	}
}
