package sched

import "time"

// Event is the only way into the engine, and a line of its log. It is a tagged struct: Kind says which fields mean
// something. Events are totally ordered by (Time, Seq).
type Event struct {
	Time Time   // never falls along a log
	Seq  uint64 // given by the engine
	Kind EventKind

	Outcome Outcome // of the attempt; why an attempt is stopped
	Pool    PoolID
	Job     JobID
	Attempt int32 // number of the attempt meant, from 1
	Node    NodeID
	Code    int32   // exit code, or NodeState, or 1 for on
	MemGB   float32 // Measured: most device memory in use on one GPU; 0 = unknown

	// At is when it happened, where a driver heard of it later: AttemptStarted, AttemptEnded; 0 = at Time. The order of
	// the log goes by Time.
	At Time

	Work     time.Duration // work done, see Job.Work
	WorkFrom Time          // see Job.WorkFrom
	Rate     float64       // see Job.Rate
	Value    float64       // price, epoch number, watts, training steps done (0 = unknown), ...

	Spec     *JobSpec   // JobArrived
	Change   *JobChange // JobChanged
	NodeSpec *NodeSpec  // NodeJoined
	PoolSpec *PoolSpec  // PoolChanged
	GPUs     []GPUID    // Decided: the target set; StartFailed: suspects. Valid until the next event; copy to keep
	Target   *Target    // Decided
	Why      Reason     // of the engine's own events
	Text     string     // for people: what went wrong
}

// Happened returns when it happened, see At.
func (e *Event) Happened() Time {
	if e.At > 0 && e.At < e.Time {
		return e.At
	}
	return e.Time
}

// GuessedRate is the Code of an AttemptStarted whose Rate was never measured on such GPUs: no one is to learn from it.
const GuessedRate = 1

// ReportsRate reports whether e says how fast a job is that runs as its does, and is no guess.
func (e *Event) ReportsRate() bool {
	return (e.Kind == Progressed || e.Kind == AttemptStarted && e.Code != GuessedRate) && e.Rate > 0
}

// What a Moved wants of GPUs, as its Code. A quarantine is lifted by UseGPU, a rest ends at WorkFrom by RestedGPU:
// neither by the other's.
const (
	UseGPU int32 = iota
	QuarantineGPU
	RestGPU // WorkFrom = until when
	RestedGPU
)

// Command is what a user wants of a job.
type Command int32

// Commands. A cancel takes effect in every state of an attempt; a requeue stops the attempt and lets the job wait.
const (
	CancelJob Command = iota + 1
	PauseJob
	ResumeJob
	RequeueJob
)
