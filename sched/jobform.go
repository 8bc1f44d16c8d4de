package sched

import (
	"bytes"
	"encoding/json"
	"time"
)

// jobForm is the JSON of a Job, which logs that start with a state and objects of Kubernetes hold. Its fields stay
// where they are, whatever becomes of those of Job.
type jobForm struct {
	formState
	formCounts
	formSets
	formTimes
	formWork
}

type formState struct {
	Spec     *JobSpec
	State    JobState
	Attempt  AttemptState
	Outcome  Outcome
	Paused   bool
	Cancel   bool
	Trial    bool
	Requeued bool
	Watched  bool
	Evidence Evidence `json:",omitempty"`
	Up       bool
}

type formCounts struct {
	Attempts      int32
	Preemptions   int32
	Migrations    int32
	Resizes       int32
	Failures      int32
	Epoch         int32
	StartFailures int32
	BlockedBy     int32
	Asked         int32
}

type formSets struct {
	GPUs   []GPUID
	Live   Config
	Target []GPUID
	Config
	Want  int32
	Later *Later
}

type formTimes struct {
	Arrived    Time
	FirstStart Time
	LastStart  Time
	End        Time
	NotBefore  Time
}

type formWork struct {
	Service GPUSeconds
	Run     time.Duration
	Settled Time

	Loss     lossForm `json:",omitzero"`
	Work     time.Duration
	WorkFrom Time
	Rate     float64
}

// lossForm is the JSON of a Loss, of when the attempt was ordered, and of what its user did.
type lossForm struct {
	Work     time.Duration `json:",omitempty"`
	Stops    int32         `json:",omitempty"`
	Base     time.Duration `json:",omitempty"`
	Began    Time          `json:",omitempty"`
	Claimed  time.Duration `json:",omitempty"`
	Unproven time.Duration `json:",omitempty"`
	Requeued time.Duration `json:",omitempty"`
	OwnStop  bool          `json:",omitempty"`
}

// MarshalJSON writes all of j.
func (j Job) MarshalJSON() ([]byte, error) {
	l, few := j.Loss(), j.few()
	return json.Marshal(&jobForm{
		formState{j.Spec, j.State, j.Attempt, j.Outcome, j.Paused, j.Cancel, j.Trial, j.Requeued, j.Watched, j.Evidence,
			j.Up},
		formCounts{j.Attempts, j.Preemptions, j.Migrations, j.Resizes, j.Failures, j.Epoch, j.StartFailures,
			j.BlockedBy(), j.Asked},
		formSets{j.GPUs, j.Live, j.Target, j.Config, j.Want, j.Later()},
		formTimes{j.Arrived, j.FirstStart, j.LastStart, j.End, j.NotBefore},
		formWork{j.Service, j.Run, j.Settled, lossForm{l.Work, l.Stops, l.Base, j.Began, l.Claimed, l.Unproven,
			few.requeued, few.ownStop}, j.Work, j.WorkFrom, j.Rate}})
}

// UnmarshalJSON reads what MarshalJSON wrote. Fields that it does not know are errors.
func (j *Job) UnmarshalJSON(b []byte) error {
	var f jobForm
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return err
	}
	*j = Job{Spec: f.Spec, State: f.State, Attempt: f.Attempt, Outcome: f.Outcome,
		Paused: f.Paused, Cancel: f.Cancel, Trial: f.Trial, Requeued: f.Requeued, Watched: f.Watched,
		Evidence: f.Evidence, Up: f.Up,
		Attempts: f.Attempts, Preemptions: f.Preemptions, Migrations: f.Migrations, Resizes: f.Resizes,
		Failures: f.Failures, Epoch: f.Epoch, StartFailures: f.StartFailures, Asked: f.Asked,
		GPUs: f.GPUs, Live: f.Live, Target: f.Target, Config: f.Config, Want: f.Want,
		Arrived: f.Arrived, FirstStart: f.FirstStart, LastStart: f.LastStart, End: f.End, NotBefore: f.NotBefore,
		Service: f.Service, Run: f.Run, Settled: f.Settled, Began: f.Loss.Began,
		Work: f.Work, WorkFrom: f.WorkFrom, Rate: f.Rate}
	j.setFew(seldom{later: f.Later, blockedBy: f.BlockedBy,
		loss:     Loss{f.Loss.Work, f.Loss.Stops, f.Loss.Base, f.Loss.Claimed, f.Loss.Unproven},
		requeued: f.Loss.Requeued, ownStop: f.Loss.OwnStop})
	return nil
}
