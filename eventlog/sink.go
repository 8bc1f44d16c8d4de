package eventlog

import "github.com/trainyard/trainyard/sched"

// Sink is given every event of the log, in order, after its fold. It must keep nothing that e or v point to.
type Sink interface {
	Log(v *sched.View, e *sched.Event)
}

// Batcher is a Sink that also hears whenever the driver has answered, and when all that followed has been logged:
// the events between are that answer, the one decision taken on it, and the orders given. An answer without events
// counts. The driver hears of the orders after EndBatch only: a log that is durable by then is never behind the world.
// An error of EndBatch ends the run.
type Batcher interface {
	BeginBatch()
	EndBatch() error
}
