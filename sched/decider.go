package sched

import "time"

// Decider is one scheduling system: a deterministic state machine over the log. It does no I/O, reads no clock, starts
// no goroutine, uses no global randomness and lets no map order reach a decision.
//
// Its memory is a function of the events observed and of the instants decided, nothing else: a log replayed through it
// gives the same decisions, and Save and Load between two instants change nothing of its future. A Decider that finds
// jobs in its first View (a restart without memory, a change of policy while jobs run) goes on from what the View
// shows.
type Decider interface {
	// Observe is called with every logged event after its fold, the system's own Decided and Refused included.
	Observe(v *View, e *Event)
	// Decide is called after the events of an instant and appends changes to d; once more if that changed which GPUs
	// may be used.
	Decide(v *View, d *Desired)
	Memory
}

// Memory is what a Decider or a stage remembers, by job and the rest, so that a store may keep each job's share with
// the job. Save appends to b; Load of what Save wrote gives the same future. A Load of nothing is an error unless Save
// writes nothing.
type Memory interface {
	// Format names what Save writes, and its version: "mlfq/1". It changes whenever a Load of what was written before
	// would be wrong. The engine writes it before each memory and gives Load only what bears it.
	Format() string
	SaveJob(j JobID, b []byte) []byte // appends what is remembered of job j
	SaveRest(b []byte) []byte         // appends all else
	LoadJob(j JobID, b []byte) error  // takes what SaveJob wrote of job j
	LoadRest(b []byte) error          // takes what SaveRest wrote
}

// Changer is a Memory that says of which jobs it may remember something else than before, so that a store need not save
// the shares of all. One that is none may remember something else of any.
type Changer interface {
	// Changed appends the jobs of which it may remember something else than when it was asked last. Those that an
	// event has named since may be left out, and so may, by a stage, those of which a Pipeline knows by itself. known
	// is false where any other may be one, too: so it may be when it is asked first.
	Changed(dst []JobID) (list []JobID, known bool)
}

// ByName is embedded by a Memory whose share of a job changes only where an event names the job, or a call of an
// Orderer or of Turns.
type ByName struct{}

// Changed appends no job.
func (ByName) Changed(dst []JobID) (list []JobID, known bool) { return dst, true }

// Resumer is a Decider that takes over the View right after its memory was loaded, before the first Observe.
type Resumer interface{ Resume(v *View) }

// Waker is a Decider that remembers when it asked to be woken. A run that is taken up again where nothing has happened
// meanwhile goes on waiting until then, as if it had never been interrupted, instead of asking once more.
type Waker interface {
	// Waits returns the Wake of the last Decide, 0 = none; known is false if there was none to remember.
	Waits() (until Time, known bool)
}

// Verifier is a Decider that compares what it keeps as indices with the View, and panics at the first difference. The
// engine asks it at the end of an instant, in builds with -tags invariants.
type Verifier interface{ Verify(v *View) }

// Key ranks a job; the smaller comes first. Value grows by Slope per second while nothing happens to the job, so that
// a key stays right between events: a running job's remaining time falls by 1, its attained service grows by its width.
// Ties go to the smaller Seq, then to the smaller JobID.
type Key struct {
	Level int64   // queue or class, before all else; an Orderer that a Classer goes with: from 0 to MaxLevel
	Value float64 // at the time of asking, in a unit of the order's own
	Slope float64 // growth of Value per second
	Seq   int64   // the smaller first at equal Level and Value
}

// Orderer ranks jobs.
type Orderer interface {
	// Key returns the rank of job j now, and until when it holds if nothing happens to j (Never: until something does).
	// It is asked again after each event of the job and at until.
	Key(v *View, j JobID) (k Key, until Time)
}

// MaxLevel is the largest Level of an Orderer that a Classer goes with.
const MaxLevel = 1<<30 - 1

// Classer puts jobs into classes, the larger first, before what their Orderer says.
type Classer interface {
	// Class returns the class of job j now, within 33 bits, and until when it holds if nothing happens to j. It follows
	// from the View alone. It is asked whenever the Orderer is.
	Class(v *View, j JobID) (class int64, until Time)
}

// Remainer estimates how much work job j still has to do, in time on the GPUs it asked for, alone. Knowledge stands
// behind it: an oracle or an estimator.
type Remainer interface {
	Remaining(v *View, j JobID) time.Duration
}

// Placer picks exact GPUs for a gang on the scratch ledger, all or nothing.
type Placer interface {
	// Fits reports whether Place would succeed, and is cheap.
	Fits(v *View, l *Ledger, j JobID, n int) bool
	// Place appends n GPUs that are free in l to dst. ok is false, and dst unchanged, if it finds none.
	Place(v *View, l *Ledger, j JobID, n int, dst []GPUID) (gpus []GPUID, ok bool)
}

// NodeNeed says how a gang is bound to nodes. The zero value says that any free GPUs do, or that nothing is known.
type NodeNeed struct {
	One bool // the gang fits iff one node of Type has enough free GPUs
	// it cannot fit unless so many nodes of Type with Size usable GPUs are wholly free; fits iff so if n is Whole*Size
	Whole int
	Size  int    // see Whole
	Type  TypeID // the only type that comes into question
}

// NodeBound is a Placer that binds gangs to nodes. Knowing how lets the search for victims look at nodes instead of
// evicting one holder after another.
type NodeBound interface {
	Need(v *View, l *Ledger, j JobID, n int) NodeNeed
}

// Turns is an Orderer that remembers who has held GPUs: it hears after each walk, in walk order.
type Turns interface {
	Took(v *View, j JobID) // job j now holds a target, or goes on holding one after its rank changed
	Lost(v *View, j JobID) // job j no longer holds one and waits
	Left(j JobID)          // job j is done
	// Astray returns the jobs that hold a target but whose rank changed since the last walk, in order of rank.
	Astray() []JobID
	// Notes returns what is worth remembering since it was last asked, such as promotions.
	Notes() []Note
	Memory
}

// Reviser is an Orderer or Placer whose answers all change now and then, when what it knows changes: a new Revision has
// every key and shape asked for again.
type Reviser interface{ Revision() uint64 }

// Admitter says what a misfit means to those behind it. A nil Admitter skips the misfit and goes on.
type Admitter interface {
	// Begin hears that a walk starts.
	Begin(v *View, l *Ledger)
	// Misfit hears that job j does not fit, and says whether the walk ends here.
	Misfit(v *View, l *Ledger, j JobID) (stop bool)
	// May reports whether job j may take gpus although a job before it waits.
	May(v *View, j JobID, gpus []GPUID) bool
}

// Grant is what an Allocator gives a job.
type Grant struct {
	Job    JobID
	GPUs   int32  // to hold, > 0
	Least  int32  // where so many do not fit, fewer are worth starting with, down to this; GPUs = all or nothing
	Want   int32  // width wanted, >= GPUs where more would be taken if it were there; 0 = GPUs
	Config Config // how it is to run; with fewer GPUs than granted, too
	Again  bool   // it is to be placed again: what it holds is on a node that drains
	// Set is where room was found for it, in GPUID order: it is placed there if all of it is free. nil = nowhere yet.
	Set []GPUID
}

// Wanted returns the width wanted.
func (g *Grant) Wanted() int32 { return max(g.Want, g.GPUs) }

// Allocator decides which jobs hold GPUs and how many, by demand alone, before any is placed. It appends its grants to
// dst, in the order in which jobs are to be placed, which need not be the order of ranks. Jobs of order, which is best
// first, that are granted nothing give up what they hold. room is the GPUs there are to give, by type; those of jobs
// that are protected are not among them, nor are these jobs in order. Into d it may reject jobs, watch epochs and ask
// to be woken; it sets no targets.
type Allocator interface {
	Allocate(v *View, room []int32, order []JobID, d *Desired, dst []Grant) []Grant
}

// Narrowest is an Allocator that can say how few GPUs it would start a job with, and who has to go before.
type Narrowest interface {
	// Least returns the fewest GPUs that job j would be started with. known is false if the job allows other widths, of
	// which this one alone is considered because nothing is known of its speed at any.
	Least(v *View, j JobID) (gpus int32, known bool)
	// Holds reports whether job j, for as long as it is not admitted, keeps from being admitted who ranks behind it.
	Holds(v *View, j JobID) bool
}

// Mover weighs the moves of jobs that run.
type Mover interface {
	// Worth reports whether job j, which holds was, is better off with now, the cost of moving counted.
	Worth(v *View, j JobID, was, now []GPUID) bool
}

// Guard says how long an attempt is to be left alone.
type Guard interface {
	// Until returns from when on job j, whose attempt started to run at started, may be stopped for others.
	Until(v *View, j JobID, started Time) Time
}

// Provisioner completes what a Decider wants once it has decided about jobs: nodes to rent, release, wake or put to
// sleep, GPUs to quarantine, power caps.
type Provisioner interface {
	// Provision appends to d, and may change the Cap of its targets; who gets which GPUs it leaves alone.
	Provision(v *View, d *Desired)
}

// Shaper is an Orderer or Placer whose answers differ between jobs of equal demand: jobs of different shape are never
// taken for one another when the walk skips all that cannot fit.
type Shaper interface {
	Shape(v *View, j JobID) int32
}

// Observer is a stage that learns from events.
type Observer interface {
	Observe(v *View, e *Event)
}
