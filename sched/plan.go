package sched

import "context"

// Plan is what may be done now: the difference between targets and what is observed. Order matters: stops come first,
// then starts, then all else.
type Plan struct {
	Actions []Action // valid until the next plan
}

// Action is one step of a plan, idempotent by (Kind, Job, Attempt), (Kind, Node) or (Kind, Pool).
type Action struct {
	Kind    ActionKind
	Job     JobID
	Attempt int32     // number of the attempt meant, from 1
	GPUs    []GPUID   // Start: the exact set, all verified free; owned by the engine, valid until the attempt ends
	Config            // Start; Adjust: its Cap
	On      bool      // WatchEpochs
	Why     Outcome   // Stop: Preempted or Cancelled
	Node    NodeID    // SetNode
	State   NodeState // SetNode
	Pool    PoolID    // Rent
	Count   int32     // Rent: nodes in all, booting ones included
}

// ActionKind names a step.
type ActionKind uint8

// Kinds of actions.
const (
	Stop        ActionKind = iota + 1 // answered by AttemptEnded
	Start                             // answered by AttemptStarted or StartFailed
	WatchEpochs                       // EpochEnded from now on, or no longer
	SetNode                           // answered by NodeChanged, NodeLeft or NodeJoined
	// Rent is absolute and answered by NodeJoined. The driver never chooses who goes: fewer nodes than there are
	// cancels boots and releases no one, that is handled by SetNode.
	Rent
	Adjust // sets the power cap of a live attempt; not answered
)

// Driver carries plans out and answers by events. It decides nothing.
type Driver interface {
	// Sync is called once, before any decision. v is what the log says so far: nothing but the header in a new one.
	// Sync reports what became of all that v shows, in order of time: the inventory (what v knows already may come
	// again), the end of every live attempt that is over and the start of those that came up, the GPUs someone else
	// uses. The orders that v shows as not answered yet are given again by the first Apply. v stays the same object for
	// the life of the state: a driver may keep it and read it inside Sync, Next and Apply, and never changes it.
	Sync(ctx context.Context, v *View) ([]Event, error)
	// Next returns all events of one instant not later than until, or one Ticked at until, and io.EOF when nothing can
	// ever come. Of one attempt it never reports the start and the end together: ends are folded first, so the end
	// waits for the next call, at the same instant if need be. The slice, and what NodeSpec of its events points to, is
	// valid until the next call.
	Next(ctx context.Context, until Time) ([]Event, error)
	// Apply starts to carry out p. It does not wait: what came of it is reported by Next.
	Apply(ctx context.Context, p Plan) error
	// Now never falls.
	Now() Time
}
