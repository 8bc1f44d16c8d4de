package report

import (
	"math"
	"strconv"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

// rounded keeps the digits that a picture shows.
func rounded(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 7, 64), 64)
	if err != nil {
		return x
	}
	return y
}

// packJobs packs what submitters said of the jobs. Where no timeline knows it, figures of a run do in part.
func (r *Report) packJobs(u unit) ([]byte, error) {
	var c columns
	jobs := r.described()
	if r.kept != nil {
		jobs = r.kept.described
		c.table("kept", len(jobs))
		c.deltas("id", len(jobs), func(i int) int64 { return int64(r.kept.ids[i]) })
	}
	n := len(jobs)
	c.table("jobs", n)
	of := func(field func(j *timeline.Job) string) func(int) string {
		return func(i int) string { return field(&jobs[i]) }
	}
	c.texts("name", n, of(func(j *timeline.Job) string { return j.Name }))
	c.words("user", n, of(func(j *timeline.Job) string { return j.User }))
	c.words("model", n, of(func(j *timeline.Job) string { return j.Model }))
	c.words("class", n, of(func(j *timeline.Job) string { return j.Class }))
	c.deltas("submit", n, func(i int) int64 { return u.in(jobs[i].Submit) })
	c.ints("deadline", n, func(i int) int64 { return u.in(jobs[i].Deadline) })
	c.ints("gpus", n, func(i int) int64 { return int64(jobs[i].GPUs.Want) })
	c.ints("fewer", n, func(i int) int64 { return int64(jobs[i].GPUs.Want - jobs[i].GPUs.Min) })
	c.ints("more", n, func(i int) int64 { return int64(jobs[i].GPUs.Max - jobs[i].GPUs.Want) })
	return c.pack()
}

// described returns the jobs of the first run that knows most of them.
func (r *Report) described() []timeline.Job {
	for i := range r.Systems {
		if t := r.Systems[i].Timeline; t != nil {
			return t.Jobs
		}
	}
	var list []timeline.Job
	if len(r.Systems) > 0 {
		for _, j := range r.Systems[0].Jobs {
			list = append(list, timeline.Job{Name: j.Name, Submit: j.Submit, GPUs: sched.Rigid(int(j.GPUs))})
		}
	}
	return list
}

// packSystem packs what became of jobs under one system.
func (r *Report) packSystem(s *System, u unit) ([]byte, error) {
	var c columns
	if s.Timeline == nil {
		packOutcomes(&c, s.Jobs, make([]spent, len(s.Jobs)), u)
		return c.pack()
	}
	packOutcomes(&c, s.Jobs, spentBy(s.shown(), len(s.Jobs), u), u)
	packNodes(&c, s.Timeline.Nodes)
	packAttempts(&c, s.shown(), u)
	packSpells(&c, s.Timeline.Spells(), u)
	if s.heat != nil {
		s.heat.pack(&c)
	}
	return c.pack()
}

// spent is what the attempts of a job say of it, in units of time. Figures of the job are packed as differences to it,
// which are nearly always 0.
type spent struct{ end, run, service int64 }

func spentBy(list []timeline.Attempt, jobs int, u unit) []spent {
	by := make([]spent, jobs)
	for i := range list {
		a := &list[i]
		if length := after(u, a.Ordered, a.Ended); length >= 0 {
			x := &by[a.Job]
			x.end, x.run = u.in(a.Ended), x.run+length
			x.service += length * int64(a.Width())
		}
	}
	return by
}

func packOutcomes(c *columns, jobs []metrics.Job, by []spent, u unit) {
	n := len(jobs)
	c.table("outcomes", n)
	of := func(field func(j *metrics.Job) int64) func(int) int64 {
		return func(i int) int64 { return field(&jobs[i]) }
	}
	c.ints("started", n, of(func(j *metrics.Job) int64 { return one(j.Start != sched.None) }))
	c.ints("finish", n, func(i int) int64 {
		if jobs[i].Finish == sched.None {
			return 0
		}
		return u.in(jobs[i].Finish) - by[i].end
	})
	c.ints("run", n, func(i int) int64 { return u.in(sched.Time(jobs[i].Run)) - by[i].run })
	c.ints("outcome", n, of(func(j *metrics.Job) int64 { return int64(j.Outcome) }))
	c.ints("preemptions", n, of(func(j *metrics.Job) int64 { return int64(j.Preemptions) }))
	c.ints("migrations", n, of(func(j *metrics.Job) int64 { return int64(j.Migrations) }))
	c.ints("resizes", n, of(func(j *metrics.Job) int64 { return int64(j.Resizes) }))
	c.ints("service", n, func(i int) int64 {
		return int64(math.Round(float64(jobs[i].Service)/u.of.Seconds())) - by[i].service
	})
	c.ints("lost_ms", n, of(func(j *metrics.Job) int64 { return int64(math.Round(float64(j.Lost) * 1000)) }))
	c.ints("energy_j", n, of(func(j *metrics.Job) int64 { return int64(math.Round(float64(j.Energy))) }))
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// after returns how much later t is than since, -1 if it never came.
func after(u unit, since, t sched.Time) int64 {
	if t == sched.None {
		return -1
	}
	return u.in(t) - u.in(since)
}

func packNodes(c *columns, nodes []timeline.Node) {
	n := len(nodes)
	c.table("nodes", n)
	c.texts("name", n, func(i int) string { return nodes[i].Name })
	c.ints("first", n, func(i int) int64 { return int64(nodes[i].First) })
	c.ints("gpus", n, func(i int) int64 { return int64(nodes[i].GPUs) })
	c.ints("type", n, func(i int) int64 { return int64(nodes[i].Type) })
	c.ints("rack", n, func(i int) int64 { return int64(nodes[i].Rack) })
}

// packAttempts packs attempts, and the runs of GPUs that they held. Times within an attempt are from its start on.
func packAttempts(c *columns, list []timeline.Attempt, u unit) {
	n, runs := len(list), 0
	for i := range list {
		runs += len(list[i].GPUs)
	}
	c.table("attempts", n)
	of := func(field func(a *timeline.Attempt) int64) func(int) int64 {
		return func(i int) int64 { return field(&list[i]) }
	}
	c.deltas("job", n, of(func(a *timeline.Attempt) int64 { return int64(a.Job) }))
	c.ints("number", n, of(func(a *timeline.Attempt) int64 { return int64(a.Number) }))
	c.deltas("start", n, of(func(a *timeline.Attempt) int64 { return u.in(a.Ordered) }))
	c.ints("length", n, of(func(a *timeline.Attempt) int64 { return after(u, a.Ordered, a.Ended) }))
	c.ints("work", n, of(func(a *timeline.Attempt) int64 { return after(u, a.Ordered, a.Work) }))
	c.ints("redone", n, of(func(a *timeline.Attempt) int64 { return redone(a, u) }))
	c.ints("stopping", n, of(func(a *timeline.Attempt) int64 { return spell(u, a.Stopped, a.Ended) }))
	c.ints("outcome", n, of(func(a *timeline.Attempt) int64 { return int64(a.Outcome) }))
	c.ints("reason", n, of(func(a *timeline.Attempt) int64 { return int64(a.Reason.Code) }))
	c.ints("other", n, of(otherJob))
	c.ints("batch", n, of(func(a *timeline.Attempt) int64 { return int64(a.Batch) }))
	c.deltas("given", n, of(func(a *timeline.Attempt) int64 { return int64(a.Given) }))
	c.ints("marks", n, of(func(a *timeline.Attempt) int64 { return int64(a.Marks) }))
	c.ints("runs", n, of(func(a *timeline.Attempt) int64 { return int64(len(a.GPUs)) }))
	flat := make([]timeline.Run, 0, runs)
	for i := range list {
		flat = append(flat, list[i].GPUs...)
	}
	c.table("runs", runs)
	c.ints("first", runs, func(i int) int64 { return int64(flat[i].First) })
	c.ints("count", runs, func(i int) int64 { return int64(flat[i].Count) })
}

func packSpells(c *columns, list []timeline.Spell, u unit) {
	n := len(list)
	c.table("spells", n)
	c.ints("first", n, func(i int) int64 { return int64(list[i].GPUs.First) })
	c.ints("count", n, func(i int) int64 { return int64(list[i].GPUs.Count) })
	c.ints("class", n, func(i int) int64 { return int64(list[i].Class) })
	c.deltas("from", n, func(i int) int64 { return u.in(list[i].From) })
	c.ints("length", n, func(i int) int64 { return u.in(list[i].To) - u.in(list[i].From) })
}

// spell returns the time from a to b, 0 if a never came, or b has not yet.
func spell(u unit, a, b sched.Time) int64 {
	if a == sched.None || b == sched.None {
		return 0
	}
	return u.in(b) - u.in(a)
}

// redone returns how long an attempt did what was lost.
func redone(a *timeline.Attempt, u unit) int64 {
	stop := a.Ended
	if a.Stopped != sched.None {
		stop = a.Stopped
	}
	return spell(u, a.Kept, stop)
}

// otherJob returns the other job of the reason of an attempt, from 1 on; 0 = none.
func otherJob(a *timeline.Attempt) int64 {
	if id, named := a.Other(); named {
		return int64(id) + 1
	}
	return 0
}
