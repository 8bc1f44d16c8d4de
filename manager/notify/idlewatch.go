package notify

import (
	"context"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/sched"
)

// IdleTime is for how long the GPUs of a job do nothing until its user hears of it.
const IdleTime = 10 * time.Minute

// idleUse is how much of its time a GPU is used at most that does nothing.
const idleUse = 0.02

// IdleWatch knows since when jobs do nothing.
type IdleWatch struct {
	since map[sched.JobID]time.Time
}

// Look returns the jobs whose users may ask to hear of it, and none of whose GPUs has done anything for IdleTime. use
// is that of a GPU, from 0 to 1; less is unknown.
func (w *IdleWatch) Look(v *sched.View, use func(g sched.GPUID) float64, now time.Time) (idle []sched.JobID) {
	since := make(map[sched.JobID]time.Time)
	for i := range v.Jobs {
		id := sched.JobID(i)
		if j := v.Job(id); j.Attempt != sched.Running || !asks(j) || !allIdle(j.GPUs, use) {
			continue
		}
		from, known := w.since[id]
		if !known {
			from = now
		}
		if since[id] = from; now.Sub(from) >= IdleTime {
			idle = append(idle, id)
		}
	}
	w.since = since
	return idle
}

func allIdle(gpus []sched.GPUID, use func(g sched.GPUID) float64) bool {
	for _, g := range gpus {
		if x := use(g); !(x >= 0 && x <= idleUse) {
			return false
		}
	}
	return len(gpus) > 0
}

// World is what Watch looks at.
type World interface {
	Look(ctx context.Context, f func(*sched.View)) error
	Devices() []device.Status // by GPUID
}

// lookEvery is how often Watch looks.
const lookEvery = 30 * time.Second

// Watch has the users of jobs hear that these do nothing, until ctx ends.
func (n *Notifier) Watch(ctx context.Context, world World) {
	var w IdleWatch
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			list := world.Devices()
			use := func(g sched.GPUID) float64 {
				if int(g) >= len(list) || now.Sub(list[g].Seen) > 2*lookEvery {
					return device.Unknown
				}
				return list[g].Reading.Use
			}
			_ = world.Look(ctx, func(v *sched.View) { n.Idle(v, w.Look(v, use, now)) })
		}
	}
}
