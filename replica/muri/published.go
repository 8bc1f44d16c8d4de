package muri

import (
	"fmt"
	"math"
)

// Policy is a schedule of the released simulator.
type Policy uint8

// The schedules without sharing, with their names there.
const (
	SRTF     Policy = iota // shortest: least remaining time first
	SRSF                   // shortest-gpu: least remaining time × GPUs first
	Tiresias               // dlas-gpu: queues by attained service, first come first served in each
)

// Limits of the first two queues of Tiresias, in GPU-seconds; the third takes the rest.
var Limits = [...]float64{3250, 7200}

// Job is one row of a trace.
type Job struct {
	ID         string  // name in the trace; not interpreted
	GPUs       int     // gang size, > 0; a job wider than the cluster is never started
	Submit     float64 // seconds, >= 0
	Iterations float64 // that it has to do, >= 0
	Overhead   float64 // seconds of progress that each pass costs while it runs, >= 0
	Iteration  float64 // seconds that an iteration takes on its GPUs, undisturbed, > 0
}

// Params says what runs where: nodes in a row, all alike.
type Params struct {
	Policy   Policy
	Nodes    int // > 0
	NodeGPUs int // of each node, > 0
	// Stop is asked before each pass; true ends the run there. nil: it goes on to its end.
	Stop func() bool
}

// Outcome is what happened to one job. Times are in seconds on the clock of Job.Submit.
type Outcome struct {
	Start       float64 // first start; only if Started
	Finish      float64 // completion; only if Finished
	Run         float64 // time with GPUs
	Preemptions int     // running → waiting
	Started     bool
	Finished    bool // false for a job that never fits: the released simulator drops it
}

// Bounds that keep the clock's resolution far below a millisecond.
const (
	maxSeconds = 1e10
	maxGPUs    = 1 << 20
)

// Validate reports the first field that Run cannot work with.
func (p Params) Validate(jobs []Job) error {
	if p.Policy > Tiresias {
		return fmt.Errorf("published: policy %d, want 0 to %d", p.Policy, Tiresias)
	}
	if p.Nodes <= 0 || p.NodeGPUs <= 0 || p.Nodes > maxGPUs || p.NodeGPUs > maxGPUs/p.Nodes {
		return fmt.Errorf("published: %d nodes of %d GPUs, want 1 to %d GPUs", p.Nodes, p.NodeGPUs, maxGPUs)
	}
	last := 0.0
	for i := range jobs {
		if err := jobs[i].validate(last); err != nil {
			return err
		}
		last = jobs[i].Submit
	}
	return nil
}

// validate reports the first field of a job that Run cannot work with, which is submitted at last at the earliest.
func (j *Job) validate(last float64) error {
	work := j.Iterations * j.Iteration
	switch {
	case j.GPUs <= 0 || j.GPUs > maxGPUs:
		return fmt.Errorf("published: job %q: gpus %d, want 1 to %d", j.ID, j.GPUs, maxGPUs)
	case !(j.Submit >= last && j.Submit <= maxSeconds):
		return fmt.Errorf("published: job %q: submit %v s, want %v to %v: jobs in order of submission", j.ID,
			j.Submit, last, maxSeconds)
	case !(work >= 0 && work <= maxSeconds && j.Iteration > 0):
		return fmt.Errorf("published: job %q: work %v s, want 0 to %v", j.ID, work, maxSeconds)
	case !(j.Overhead >= 0 && j.Overhead <= maxSeconds):
		return fmt.Errorf("published: job %q: overhead %v s, want 0 to %v", j.ID, j.Overhead, maxSeconds)
	}
	return nil
}

var never = math.Inf(1)

// stopped reports whether the run is to end.
func (p *Params) stopped() bool { return p.Stop != nil && p.Stop() }
