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

// EventKind names what happened. The words are part of the log format.
type EventKind uint8

// Kinds of events. Their numbers are in the hashes of logs for ever: a new kind goes at the end. eventForms declares
// all else about them.
const (
	NoEvent EventKind = iota
	// Job, Attempt, Outcome, Code, Work, Value = steps, of NodeLost and Failed WorkFrom = not again before: all
	// processes are gone, its devices are free
	AttemptEnded
	// Job, Attempt, Work, WorkFrom, Rate, Value = steps, Code = GuessedRate or 0: all ranks run
	AttemptStarted
	StartFailed // Job, Attempt, GPUs = suspects, Text, WorkFrom = not again before
	Progressed  // Job, Attempt, Work, WorkFrom, Rate, Value = steps, Code = steps in all (0 = unknown)
	EpochEnded  // Job, Attempt, Value = epoch; only where watched
	NodeLeft    // Node: down, released or asleep (Code = NodeState); its attempts ended before
	NodeJoined  // NodeSpec: a new node, or one that came back under its name
	NodeChanged // Node, Code = NodeState: up, asleep, draining
	GPUChanged  // Value = GPUID, Code = GPUState
	PoolChanged // Pool, PoolSpec: what may be rented changed, or a pool is new
	// Pool, Value = price of a node and hour; Pool None: of owned node Node, or of all owned ones if that is None
	PriceChanged
	// Node, Value = watts (0 = unknown), Rate = use of its busy GPUs, 0..1, MemGB; or Job: of its GPUs
	Measured
	JobArrived   // Spec; the engine gives Job
	JobCommanded // Job, Code = Command
	JobChanged   // Job, Change: its user wants it otherwise
	Ticked       // a wake-up asked for
	Renewed      // Text = why: from here on a Decider decides that knows nothing but what the View shows

	Decided // Job, Target, GPUs, Why: the job's target is now GPUs
	// Job, Attempt, Node, Pool, Code = ActionKind, Outcome = why it stops, Value = on, state or count: the intent,
	// logged
	// before the driver hears of it
	Ordered
	// the target of a node (Node, Code = NodeState), a pool (Node None, Pool, Code = nodes) or GPUs of Node (GPUs,
	// Code = UseGPU ...)
	Moved
	Refused  // Job, Why, Text: Check refused a target
	Rejected // Job, Why: refused for good
	Noted    // Job, Why
	Released // Job: became eligible (dependencies met, time come)
	EventKinds
)

// GuessedRate is the Code of an AttemptStarted whose Rate was never measured on such GPUs: no one is to learn from it.
const GuessedRate = 1

// TellsRate reports whether e says how fast a job is that runs as its does, and is no guess.
func (e *Event) TellsRate() bool {
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
