package sched

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
	// logged before the driver hears of it
	Ordered
	// the target of a node (Node, Code = NodeState), a pool (Node None, Pool, Code = nodes) or GPUs of Node (GPUs,
	// Code = UseGPU ...)
	Moved
	Refused  // Job, Why, Text: Check refused a target
	Rejected // Job, Why: refused for good
	Noted    // Job, Why
	Released // Job: became eligible (dependencies met, time come)
	Saved    // Job, Attempt, Code = SavedWork ..., Work, Value = steps kept: what shows whether it keeps its work
	EventKinds
)

// EventForm declares one kind of event. All that reads, writes, checks and orders events goes by it.
type EventForm struct {
	Word string // in logs
	// Turn is when the event is folded among those of its instant, the smaller first; ties as they came.
	Turn  uint8
	Cause Cause
	Job   Mention // whether Job names a job
	Node  Mention // whether Node names a node
	Pool  bool    // Pool names a pool: 0 is one like any other
	// Attempt: it is about an attempt of Job, and stale once that has ended.
	Attempt bool
	// Life: it is a step in the life of its job, which is worth keeping with the job.
	Life bool
	// Moves: it may change the State or the Attempt of its job.
	Moves bool

	Value string   // key of Value in logs, written even if zero; "": "value", left out if zero
	Bare  bool     // Value is left out if zero all the same
	Code  string   // key of Code in logs, written even if zero; "": "code", left out if zero
	Words []string // of Code by number; nil: a number
	From  string   // key of WorkFrom in logs; "": "from"
}

// Mention says whether an event names a job, or a node.
type Mention uint8

// Mentions. Where something is named, 0 is a number like any other.
const (
	NotNamed   Mention = iota
	Named              // one that is there
	MaybeNamed         // one that is there, or None
	Made               // one that is there from now on; the engine gives the number
)

// Cause says who may cause an event.
type Cause uint8

// Causes.
const (
	ByDriver Cause = iota // what it sees: attempts, nodes, GPUs, prices
	ByUser                // what a user wants; a driver, or a host, reports it
	ByEngine              // the engine itself; no driver may report it
)

// Words of codes.
var (
	nodeStateWords = wordsOf(NodeGone, NodeState.String)
	gpuStateWords  = []string{"in-use", "foreign", "missing", "stuck"}
	gpuTargetWords = []string{"in-use", "quarantined", "resting", "rested"}
	commandWords   = []string{"", "cancel", "pause", "resume", "requeue"}
	savedWords     = []string{"work", "nothing", "went-on", "from-zero", "started-over"}
	actionWords    = []string{"", "stop", "start", "watch", "set-node", "rent", "adjust"}
)

// wordsOf returns the words of the numbers 0 to last.
func wordsOf[T ~uint8](last T, word func(T) string) []string {
	words := make([]string, int(last)+1)
	for i := range words {
		words[i] = word(T(i))
	}
	return words
}

// eventForms declares the kinds. A new one takes the next free number, since numbers are in the hashes of logs for
// ever, and any Turn: those that there are leave room between them.
var eventForms = [EventKinds]EventForm{
	NoEvent: {Word: "none"},
	AttemptEnded: {Word: "ended", Turn: 10, Job: Named, Attempt: true, Life: true, Moves: true, Value: "steps",
		Bare: true},
	AttemptStarted: {Word: "started", Turn: 20, Job: Named, Attempt: true, Life: true, Moves: true, Value: "steps",
		Bare: true},
	StartFailed: {Word: "start-failed", Turn: 30, Job: Named, Attempt: true, Life: true, Moves: true,
		From: "not_before"},
	Progressed: {Word: "progressed", Turn: 40, Job: Named, Attempt: true, Life: true, Value: "steps", Bare: true},
	Saved: {Word: "saved", Turn: 8, Job: Named, Attempt: true, Life: true, Value: "steps", Bare: true, Code: "what",
		Words: savedWords},
	EpochEnded: {Word: "epoch", Turn: 50, Job: Named, Attempt: true, Life: true, Value: "epoch"},

	NodeLeft:     {Word: "node-left", Turn: 60, Node: Named, Code: "state", Words: nodeStateWords},
	NodeJoined:   {Word: "node-joined", Turn: 70, Node: Made},
	NodeChanged:  {Word: "node-changed", Turn: 80, Node: Named, Code: "state", Words: nodeStateWords},
	GPUChanged:   {Word: "gpu-changed", Turn: 90, Value: "gpu", Code: "state", Words: gpuStateWords},
	PoolChanged:  {Word: "pool", Turn: 100, Pool: true},
	PriceChanged: {Word: "price", Turn: 110, Pool: true, Value: "price"},
	Measured:     {Word: "measured", Turn: 120, Job: MaybeNamed, Node: MaybeNamed, Value: "watts", Bare: true},

	JobArrived: {Word: "arrived", Turn: 130, Cause: ByUser, Job: Made, Life: true, Moves: true},
	JobCommanded: {Word: "command", Turn: 140, Cause: ByUser, Job: Named, Life: true, Moves: true, Code: "command",
		Words: commandWords},
	JobChanged: {Word: "changed", Turn: 150, Cause: ByUser, Job: Named, Life: true},
	Ticked:     {Word: "tick", Turn: 160},
	Renewed:    {Word: "renewed", Turn: 170},

	Decided: {Word: "decided", Turn: 180, Cause: ByEngine, Job: Named, Life: true},
	Ordered: {Word: "ordered", Turn: 190, Cause: ByEngine, Job: MaybeNamed, Life: true, Moves: true, Code: "action",
		Words: actionWords},
	Moved:    {Word: "moved", Turn: 200, Cause: ByEngine, Node: MaybeNamed, Code: "state", Words: nodeStateWords},
	Refused:  {Word: "refused", Turn: 210, Cause: ByEngine, Job: MaybeNamed},
	Rejected: {Word: "rejected", Turn: 220, Cause: ByEngine, Job: Named, Life: true, Moves: true},
	Noted:    {Word: "noted", Turn: 230, Cause: ByEngine, Job: MaybeNamed, Life: true},
	Released: {Word: "released", Turn: 240, Cause: ByEngine, Job: Named, Life: true, Moves: true},
}

// What a Moved is about if not a node: GPUs of one, or a pool.
var (
	movedGPUs = EventForm{Word: "moved", Turn: 200, Cause: ByEngine, Node: MaybeNamed, Code: "state",
		Words: gpuTargetWords, From: "until"}
	movedPool = EventForm{Word: "moved", Turn: 200, Cause: ByEngine, Node: MaybeNamed, Pool: true, Code: "count"}
)

// Form returns the declaration of a known kind, for reading.
func (k EventKind) Form() *EventForm { return &eventForms[k] }

// Form returns the declaration that e goes by: that of its kind, of a Moved that of what it is about. Its kind must be
// known.
func (e *Event) Form() *EventForm {
	switch {
	case e.Kind != Moved:
		return &eventForms[e.Kind]
	case len(e.GPUs) > 0:
		return &movedGPUs
	case e.Node == None:
		return &movedPool
	}
	return &eventForms[Moved]
}

// String returns the word of a known kind, which is part of the log format.
func (k EventKind) String() string { return eventForms[k].Word }

// Own reports whether the engine itself writes events of this kind.
func (k EventKind) Own() bool { return eventForms[k].Cause == ByEngine }
