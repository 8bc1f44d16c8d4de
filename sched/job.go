package sched

import (
	"fmt"
	"time"
)

// JobSpec is what a submitter said about a job, and nothing else: true durations, speedup curves and scores live in
// package trace and in driver/sim. It is immutable once it has arrived: a JobChanged gives the job
// another. Zero values mean the documented default.
type JobSpec struct {
	Name  string // as the submitter wrote it; may repeat
	User  string // "" = unknown
	Group string // group, project or virtual cluster; "" = none
	Model string // model name, for profiles; "" = unknown
	Class string // application class; "" = unknown

	Submit   Time          // when the job was submitted
	Priority int32         // larger first, where a system looks at it
	GPUs     Range         // width in GPUs; Min == Max for a rigid gang
	Batch    BatchRange    // zero: the job chooses its batch size
	Types    TypeSet       // acceptable GPU types; a gang has one type; 0 = any
	CPUs     float32       // CPUs per GPU; 0 = no demand
	MemoryGB float32       // host memory per GPU; 0 = no demand
	GPUMemGB float32       // device memory per GPU; 0 = unknown
	Share    Consent       // whether others may use its GPUs at the same time
	Epochs   int32         // training epochs in all; 0 = unknown
	Util     float32       // stated use of its GPUs when alone, 0..1; 0 = unknown
	Retries  int32         // restarts granted after a failure of the job's own
	WallTime time.Duration // limit on the run time as the user stated it; 0 = none
	Deadline Time          // 0 = none
	NotBef   Time          // not eligible before; 0 = at once
	After    []JobID       // jobs that must be done first, however they ended
	Ties     Ties          `json:",omitzero"` // what else is between it and other jobs
	Stops
	Task string // what a driver of real processes runs, in its own words; "" elsewhere
	// under which the jobs from this one on were submitted, in the host's own words: see host.Once; "" = under none
	Key string `json:",omitempty"`
}

// Stops is what a submitter said about stops of a job for others.
type Stops struct {
	Saves   bool        `json:",omitempty"` // its submitter says how it saves its work
	Preempt Preemptible `json:",omitempty"` // whether it may be stopped for others
}

// Range is a range of widths: Min <= Want <= Max, all > 0. Want is what a system that does not resize gives.
type Range struct{ Min, Want, Max int32 }

// Rigid is the range of a gang of exactly n GPUs.
func Rigid(n int) Range { return Range{int32(n), int32(n), int32(n)} }

// Has reports whether width n is inside the range.
func (r Range) Has(n int) bool { return int(r.Min) <= n && n <= int(r.Max) }

// BatchRange bounds the global batch size in samples, and the samples that fit on one GPU.
type BatchRange struct{ Min, Max, PerGPU int32 }

// Consent is a job's answer to sharing its GPUs.
type Consent uint8

// Answers to sharing; the zero value refuses.
const (
	ShareNever Consent = iota
	ShareAllow
	ShareRequire
)

// Validate returns the first thing wrong with s: field, value, what is wanted.
func (s *JobSpec) Validate() error {
	switch {
	case s.GPUs.Min < 1:
		return fmt.Errorf("gpus %d, want > 0", s.GPUs.Min)
	case s.GPUs.Want < s.GPUs.Min || s.GPUs.Max < s.GPUs.Want:
		return fmt.Errorf("gpus %d..%d with default %d, want min <= default <= max", s.GPUs.Min, s.GPUs.Max,
			s.GPUs.Want)
	case s.Batch.Min < 0 || s.Batch.Max < s.Batch.Min:
		return fmt.Errorf("batch %d..%d, want 0 <= min <= max", s.Batch.Min, s.Batch.Max)
	case s.Submit < 0:
		return fmt.Errorf("submit %v, want >= 0", s.Submit)
	case !(s.CPUs >= 0) || !(s.MemoryGB >= 0) || !(s.GPUMemGB >= 0):
		return fmt.Errorf("cpus %v, memory %v GB, gpu memory %v GB, want >= 0", s.CPUs, s.MemoryGB, s.GPUMemGB)
	case s.Epochs < 0 || !(s.Util >= 0 && s.Util <= 1):
		return fmt.Errorf("epochs %d, utilisation %v, want >= 0 and 0..1", s.Epochs, s.Util)
	case s.WallTime < 0 || s.Retries < 0:
		return fmt.Errorf("wall time %v, retries %d, want >= 0", s.WallTime, s.Retries)
	}
	return s.Ties.validate()
}

// JobState says where a job stands.
type JobState uint8

// States of a job. A job that is Held is not eligible: paused by its user, waiting for other jobs or for a time.
const (
	Held JobState = iota
	Waiting
	Active // has a live attempt
	Done   // see Outcome
)

// The words of these enumerations are part of the log format.
var jobStates = [...]string{"held", "waiting", "active", "done"}

// String returns the word of a known state.
func (s JobState) String() string { return jobStates[s] }

// AttemptState says where the latest attempt of a job stands. Stopping is irrevocable.
type AttemptState uint8

// States of an attempt, in the order in which they are passed.
const (
	NoAttempt AttemptState = iota
	Starting
	Running
	Stopping
	Ended
)

var attemptStates = [...]string{"none", "starting", "running", "stopping", "ended"}

// String returns the word of a known state.
func (s AttemptState) String() string { return attemptStates[s] }

// Outcome says how an attempt, or a job, ended.
type Outcome uint8

// Outcomes. Only Preempted and NodeLost leave the job waiting for another attempt, and Failed while retries are left.
const (
	NoOutcome Outcome = iota
	Finished
	Preempted
	Cancelled
	Failed
	NodeLost
	RejectedJob // the system refused the job for good
)

var outcomes = [...]string{"", "finished", "preempted", "cancelled", "failed", "node-lost", "rejected"}

// String returns the word of a known outcome; NoOutcome is "".
func (o Outcome) String() string { return outcomes[o] }

// Job is one job as the engine knows it. Slices are owned by the engine and must not be kept or changed. A View has one
// of each job that ever arrived, so a Job is four lines of 64 bytes, and what few jobs have is in seldom. Its JSON is
// that of jobForm.
type Job struct {
	Spec     *JobSpec
	State    JobState
	Attempt  AttemptState // of attempt number Attempts
	Outcome  Outcome      // of the job once Done
	Paused   bool         // by its user
	Cancel   bool         // its user wants it gone
	Trial    bool         // the current target is a trial
	Requeued bool         // by its user: the live attempt must go
	Watched  bool         // its epoch ends are reported
	Evidence Evidence     // what shows that it keeps its work
	Up       bool         // the attempt has started: service is being attained, stopping included

	Attempts      int32 // attempts started
	Preemptions   int32 // targets taken away with none given in exchange
	Migrations    int32 // targets exchanged for another set of the same size
	Resizes       int32 // targets exchanged for a set of another size
	Failures      int32 // attempts that failed by the job's own fault
	Epoch         int32 // the last whose end was reported; only where watched
	StartFailures int32 // starts that failed since the last that did not
	Asked         int32 // GPUs that it asked for when it arrived; 0 = those of Spec
	Want          int32 // width wanted, >= len(Target) where more would be taken

	GPUs   []GPUID // devices held by the live attempt, in GPUID order
	Live   Config  // of the live attempt
	Target []GPUID // devices it is to hold, in GPUID order; empty = none
	Config         // of the target

	Arrived    Time
	FirstStart Time // None before the first attempt has started
	LastStart  Time // of the latest attempt that started
	End        Time // valid once Done
	NotBefore  Time // after a failed start or a user's request
	Began      Time // when the latest attempt was ordered

	Service GPUSeconds    // attained service up to Settled
	Run     time.Duration // time from started to ended, stopping included, up to Settled
	Settled Time          // Service and Run are exact at this time and grow while an attempt runs

	Work     time.Duration // work done, in time on Unit GPUs alone, as last reported, at WorkFrom
	WorkFrom Time          // from when Rate applies (a restart delays it)
	Rate     float64       // work per time while running; 0 = unknown

	seldom *seldom // nil = nothing of it
}

// Unit returns on how many GPUs a second is a second of work: those that the job asked for when it arrived, whatever
// its user wants since. Work and Rate mean the same throughout the life of a job.
func (j *Job) Unit() int32 {
	if j.Asked > 0 {
		return j.Asked
	}
	return j.Spec.GPUs.Want
}

// HoldsDevices reports whether an attempt of j occupies its GPUs.
func (j *Job) HoldsDevices() bool {
	return j.Attempt == Running || j.Attempt == Stopping || j.Attempt == Starting
}

// Settle brings Service and Run up to now. It is called by the engine whenever an event touches the job.
func (j *Job) Settle(now Time) {
	if j.Up {
		d := now.Sub(j.Settled)
		j.Run += d
		j.Service += GPUTime(len(j.GPUs), d)
	}
	j.Settled = now
}

// ServiceNow returns the attained service at now without changing j.
func (j *Job) ServiceNow(now Time) GPUSeconds {
	if !j.Up {
		return j.Service
	}
	return j.Service + GPUTime(len(j.GPUs), now.Sub(j.Settled))
}

// RunNow returns the time spent running at now without changing j.
func (j *Job) RunNow(now Time) time.Duration {
	if !j.Up {
		return j.Run
	}
	return j.Run + now.Sub(j.Settled)
}

// WorkNow returns the work done at now as far as reports show: the last report, plus Rate times the time since.
func (j *Job) WorkNow(now Time) time.Duration {
	if j.Attempt != Running || now <= j.WorkFrom {
		return j.Work
	}
	return j.Work + ScaleDuration(now.Sub(j.WorkFrom), j.Rate)
}

// ScaleDuration returns d*f rounded down to a nanosecond; f = 1 is exact.
func ScaleDuration(d time.Duration, f float64) time.Duration {
	if f == 1 {
		return d
	}
	return time.Duration(float64(d) * f)
}

// Eligible reports whether the job may be given GPUs: neither held nor done, and neither to be cancelled nor paused,
// although its attempt may still be stopping.
func (j *Job) Eligible() bool {
	return (j.State == Waiting || j.State == Active) && !j.Cancel && !j.Paused
}
