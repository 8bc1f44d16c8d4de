package sched

import "fmt"

// Desired collects the changes of target that a Decider wants. A job, pool, node or GPU it does not name keeps its
// target. The engine resets it before each Decide, copies what it keeps, and owns the memory.
type Desired struct {
	Jobs       []Target
	Pools      []PoolTarget
	Nodes      []NodeTarget
	GPUTargets []GPUTarget
	Reject     []Reject
	Watch      []Watch
	Notes      []Note
	Wake       Time    // Decide again at this time at the latest; replaced by each Decide, 0 = none
	GPUs       []GPUID // arena that Targets index
}

// Span is a part of Desired.GPUs.
type Span struct{ Off, Len int32 }

// Target is what a job is to hold. An empty set takes everything away.
type Target struct {
	Job  JobID
	Want int32 // width wanted; 0 = len(GPUs). More than len(GPUs) is for provisioning and explanation
	GPUs Span  // exact set, without repeats
	Config
	Trial bool // a co-location to be kept or undone; Check allows one newcomer per set
	At    Boundary
	Why   Reason
}

// Config is how a job is to run on its GPUs. All but Cap is fixed while an attempt lives: a change restarts it.
type Config struct {
	Batch   int32   // global batch size; 0: the job chooses it
	Accum   int16   // gradient accumulation steps; 0 = 1
	LRScale float32 // factor on the learning rate; 0 = 1
	Share   Share
	Cap     Watts // power cap per GPU; 0 = none
}

// Restarts reports whether an attempt under d must be stopped to run under c.
func (c *Config) Restarts(d *Config) bool {
	return c.Batch != d.Batch || c.Accum != d.Accum || c.LRScale != d.LRScale || c.Share != d.Share
}

// Later is a target that waits for the job's next epoch end; no GPUs means that the job leaves then.
type Later struct {
	GPUs []GPUID
	Config
	Want  int32
	Trial bool
	Why   Reason
}

// Share says how a target uses its GPUs.
type Share uint8

// Ways to use a GPU.
const (
	Exclusive Share = iota
	Shared          // with other tenants, up to View.ShareLimit
)

// Boundary says when an exchange of targets takes place.
type Boundary uint8

// Boundaries. AtEpochEnd has the job's epochs watched. With it the old set stays booked and the new one is not reserved
// until the job's own next epoch end; a later target replaces it.
const (
	AtOnce Boundary = iota
	AtEpochEnd
)

// PoolTarget asks for a number of rented nodes. Spend counts from the request. Who wants fewer than have joined names
// those to go, by a NodeTarget for each: a smaller number alone cancels boots.
type PoolTarget struct {
	Pool  PoolID
	Count int32 // nodes in all, not in addition
}

// NodeTarget asks for a state of a node: up, asleep, draining, gone (release).
type NodeTarget struct {
	Node  NodeID
	State NodeState
}

// GPUTarget asks for a GPU to be given to no one from now on, or lifts that. An attempt on it stays.
type GPUTarget struct {
	GPU         GPUID
	Quarantined bool
}

// Reject refuses a job for good.
type Reject struct {
	Job JobID
	Why Reason
}

// Watch switches the epoch events of one job on or off; it holds until switched off, which is not heard while a target
// waits for an epoch end of the job.
type Watch struct {
	Job JobID
	On  bool
}

// Note records something a policy wants remembered and explained, such as a promotion. It changes no target.
type Note struct {
	Job JobID
	Why Reason
}

// Reset empties d and keeps its memory.
func (d *Desired) Reset() {
	d.Jobs, d.Pools, d.Nodes, d.GPUTargets = d.Jobs[:0], d.Pools[:0], d.Nodes[:0], d.GPUTargets[:0]
	d.Reject, d.Watch, d.Notes, d.GPUs = d.Reject[:0], d.Watch[:0], d.Notes[:0], d.GPUs[:0]
	d.Wake = 0
}

// Empty reports whether d changes nothing (a wake-up changes nothing).
func (d *Desired) Empty() bool {
	return len(d.Jobs)+len(d.Pools)+len(d.Nodes)+len(d.GPUTargets)+len(d.Reject)+len(d.Watch)+len(d.Notes) == 0
}

// Give appends a target of exactly gpus for job j, which it copies; no gpus takes everything away.
func (d *Desired) Give(j JobID, gpus []GPUID, why Reason) *Target {
	span := Span{int32(len(d.GPUs)), int32(len(gpus))}
	d.GPUs = append(d.GPUs, gpus...)
	d.Jobs = append(d.Jobs, Target{Job: j, GPUs: span, Why: why})
	return &d.Jobs[len(d.Jobs)-1]
}

// Keep appends a target for job j that is what it has now, to be changed.
func (d *Desired) Keep(v *View, j JobID) *Target {
	job := &v.Jobs[j]
	t := d.Give(j, job.Target, Reason{})
	t.Config, t.Want, t.Trial = job.Config, job.Want, job.Trial
	return t
}

// Set returns the GPUs of t.
func (d *Desired) Set(t *Target) []GPUID { return d.GPUs[t.GPUs.Off : t.GPUs.Off+t.GPUs.Len] }

// WakeBy lowers Wake to t if t is earlier.
func (d *Desired) WakeBy(t Time) {
	if t != Never && (d.Wake == 0 || t < d.Wake) {
		d.Wake = t
	}
}

// Reason says why: a code, a job it has to do with and two numbers whose meaning the code fixes.
type Reason struct {
	Code ReasonCode
	Job  JobID // the other job; meaningful only where the code says so
	A, B float64
}

// ReasonCode names a reason. The words are part of the log format.
type ReasonCode uint8

// Reasons. A and B are given in brackets.
const (
	NoReason       ReasonCode = iota
	WhyStarted                // it was its turn and it fits
	WhyPreempted              // Job, which ranks higher, took its GPUs
	WhyMoved                  // another set serves it better [relative gain]
	WhyResized                // another width serves it better [old, new width]
	WhyPromoted               // waited long enough [waited seconds, executed seconds]
	WhyDemoted                // attained the limit of its queue [new queue, service]
	WhyTooWide                // wider than the cluster can ever be [width, capacity]
	WhyQuota                  // over a quota or a per-user limit [would hold, limit]
	WhyInvalid                // breaks an invariant; the text says which
	WhyStartFailed            // the last start failed [failures]
	WhyTrial                  // it joins Job and others on trial [jobs there, what that is worth more, 0 = not weighed]
	WhyKept                   // its trial next to Job is over, or Job was taken off: it stays [GB that Job had]
	// next to Job, or for it, a deadline or a limit would be missed: its trial is undone; or it had more memory than
	// fits [GB that it had, 0 = it is not for memory]
	WhyUndone
	WhyPaired // it shares the GPUs of Job
	WhyAtRisk // it would miss its deadline even alone
	WhyNoRoom // its fewest GPUs are not to be had, and it is not to wait [fewest, free]
	WhyAfter  // Job, on which it depends, ended otherwise than it wants
)

var reasonWords = [...]string{"", "started", "preempted", "moved", "resized", "promoted", "demoted", "too-wide",
	"quota",
	"invalid", "start-failed", "trial", "kept", "undone", "paired", "at-risk", "no-room",
	"after"}

// String returns the word of c; NoReason is "".
func (c ReasonCode) String() string {
	if int(c) < len(reasonWords) {
		return reasonWords[c]
	}
	return fmt.Sprintf("reason-%d", uint8(c))
}
