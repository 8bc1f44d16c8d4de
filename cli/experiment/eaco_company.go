package experiment

import (
	"cmp"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// eacoCompany is what jobs spend next to the same others, and what it costs them.
type eacoCompany struct {
	Models []string `json:"models"`        // sorted
	Share  float64  `json:"job_time"`      // of the time of all jobs
	Slow   float64  `json:"slow_down"`     // mean, time over that alone
	Excess float64  `json:"run_over_work"` // what it adds to the run time of all jobs, relative to their work
}

// companies is a Sink that adds up how long jobs run next to which others, and how fast. Jobs have whole nodes.
type companies struct {
	now  sched.Time
	work []atWork
	sums map[string]*spent
}

// atWork is a job that runs since now.
type atWork struct {
	sum  *spent
	rate float64
}

// spent is the time of jobs in one company, and the work done in it, in seconds.
type spent struct {
	models     []string
	time, work float64
}

// begin starts another run, which is added to those before.
func (c *companies) begin() { c.now, c.work = 0, c.work[:0] }

// Log folds one event.
func (c *companies) Log(v *sched.View, e *sched.Event) {
	for _, j := range c.work {
		sec := e.Time.Sub(c.now).Seconds()
		j.sum.time += sec
		j.sum.work += sec * j.rate
	}
	c.now = e.Time
	switch e.Kind {
	case sched.AttemptStarted, sched.AttemptEnded, sched.Progressed:
		c.look(v)
	}
}

// look takes note of who runs now, next to whom and how fast.
func (c *companies) look(v *sched.View) {
	together := make(map[sched.GPUID][]string) // by the first GPU of a node
	for id := range v.Jobs {
		if j := &v.Jobs[id]; j.Attempt == sched.Running {
			together[j.GPUs[0]] = append(together[j.GPUs[0]], j.Spec.Model)
		}
	}
	for _, models := range together {
		slices.Sort(models)
	}
	c.work = c.work[:0]
	for id := range v.Jobs {
		if j := &v.Jobs[id]; j.Attempt == sched.Running {
			c.work = append(c.work, atWork{c.of(together[j.GPUs[0]]), j.Rate})
		}
	}
}

// of returns what was spent in a company.
func (c *companies) of(models []string) *spent {
	if c.sums == nil {
		c.sums = make(map[string]*spent)
	}
	key := strings.Join(models, "+")
	if c.sums[key] == nil {
		c.sums[key] = &spent{models: models}
	}
	return c.sums[key]
}

// list returns the companies, those that cost most first.
func (c *companies) list() (list []eacoCompany) {
	time, work := 0.0, 0.0
	names := make([]string, 0, len(c.sums))
	for name := range c.sums {
		names = append(names, name)
	}
	slices.Sort(names) // sums must not depend on the order of a map
	for _, name := range names {
		time, work = time+c.sums[name].time, work+c.sums[name].work
	}
	for _, name := range names {
		s := c.sums[name]
		list = append(list, eacoCompany{s.models, s.time / time, s.time / s.work, (s.time - s.work) / work})
	}
	slices.SortStableFunc(list, func(x, y eacoCompany) int { return cmp.Compare(y.Excess, x.Excess) })
	return list
}
