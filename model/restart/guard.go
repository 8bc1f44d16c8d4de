package restart

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Guard keeps jobs from being stopped for others by Rails, as the costs of restarts become known. What counts are all
// stops but those by which a user is rid of a job.
type Guard struct {
	sched.ByName

	Rails
	Cost func(model string) time.Duration // of a restart; nil = nothing

	stopped [][]sched.Time // by JobID: when it was, the last PerHour times
}

var (
	_ sched.Guard    = (*Guard)(nil)
	_ sched.Observer = (*Guard)(nil)
	_ sched.Memory   = (*Guard)(nil)
)

// Until returns from when on the job may be stopped.
func (g *Guard) Until(v *sched.View, j sched.JobID, started sched.Time) sched.Time {
	cost := time.Duration(0)
	if g.Cost != nil {
		cost = g.Cost(v.Jobs[j].Spec.Model)
	}
	var stopped []sched.Time
	if int(j) < len(g.stopped) {
		stopped = g.stopped[j]
	}
	return g.From(started, cost, stopped)
}

// Observe notes when jobs are stopped.
func (g *Guard) Observe(v *sched.View, e *sched.Event) {
	switch {
	case g.PerHour == 0:
	case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Stop && e.Outcome == sched.Preempted:
		for int(e.Job) >= len(g.stopped) {
			g.stopped = append(g.stopped, nil)
		}
		s := g.stopped[e.Job]
		if len(s) == g.PerHour {
			s = append(s[:0], s[1:]...)
		}
		g.stopped[e.Job] = append(s, e.Time)
	case e.Kind == sched.AttemptEnded && int(e.Job) < len(g.stopped) && v.Jobs[e.Job].State == sched.Done:
		g.stopped[e.Job] = nil
	}
}
