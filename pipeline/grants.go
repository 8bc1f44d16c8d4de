package pipeline

import "github.com/trainyard/trainyard/sched"

// grants are what the division of GPUs gave in the walk under way.
type grants struct {
	list []sched.Grant
	of   []int32 // by job: 1 + its index in list
	room []int32 // GPUs that were to be granted, by type
}

// forget empties the grants and makes room for so many jobs.
func (g *grants) forget(jobs int) {
	for i := range g.list {
		g.of[g.list[i].Job] = 0
	}
	g.list = g.list[:0]
	if more := jobs - len(g.of); more > 0 {
		g.of = append(g.of, make([]int32, more)...)
	}
}

// take takes the answer of the division.
func (g *grants) take(list []sched.Grant) {
	g.list = list
	for i := range list {
		g.of[list[i].Job] = int32(i) + 1
	}
}

// to returns what job id was granted, nil if nothing, or nothing is divided.
func (g *grants) to(id sched.JobID) *sched.Grant {
	if len(g.of) == 0 || g.of[id] == 0 {
		return nil
	}
	return &g.list[g.of[id]-1]
}

// asRuns reports whether job id is to run as it does.
func (g *grants) asRuns(v *sched.View, id sched.JobID) bool {
	x, j := g.to(id), &v.Jobs[id]
	return x == nil || j.Config == x.Config && j.Want == x.Wanted()
}

// give appends that job id is to have the set, to run as it was granted.
func (g *grants) give(d *sched.Desired, id sched.JobID, set []sched.GPUID, why sched.Reason) {
	t := d.Give(id, set, why)
	if x := g.to(id); x != nil {
		t.Config, t.Want = x.Config, x.Wanted()
	}
}

// reconfigure has those who keep the GPUs they hold run as they were granted: the walk has not touched them.
func (g *grants) reconfigure(v *sched.View, d *sched.Desired, b *books, w *walk) {
	for i := range g.list {
		x := &g.list[i]
		if b.jobs[x.Job].in == holding && !w.touches(x.Job) && !g.asRuns(v, x.Job) {
			t := d.Keep(v, x.Job)
			t.Config, t.Want = x.Config, x.Wanted()
		}
	}
}
