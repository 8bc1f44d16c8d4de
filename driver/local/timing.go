package local

import (
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// timing is how long an attempt may take, for as long as that holds.
type timing struct {
	times *task.Times   // nil = as ordered
	over  chan struct{} // closed once another one holds
}

// pass says to the shim what holds. If it is gone, the next connection says it again.
func (t *timing) pass(conn *shim.Conn) {
	if t.times != nil {
		_ = conn.Retime(*t.times)
	}
}

// grace is how long the attempt of an order has to end.
func (t *timing) grace(o *shim.Order) time.Duration {
	if t.times != nil {
		return t.times.Grace
	}
	return o.Grace
}

// retime has attempts take as long as their jobs say, wherever these were changed.
func (b *attemptBook) retime(jobs []sched.Job) {
	for job, a := range b.live {
		if int(job) < len(jobs) && jobs[job].Spec != a.spec {
			a.spec = jobs[job].Spec
			a.retime()
		}
	}
}

// retime has an attempt take as long as its job says.
func (a *attempt) retime() {
	if t, err := task.DecodeTask(a.spec.Task); err == nil {
		times := t.Times()
		close(a.timing.Swap(&timing{&times, make(chan struct{})}).over)
	}
}
