package tiresias

import (
	"fmt"
	"math"
)

// DefaultDelta is the Gittins quantum of the released simulator, in GPU-seconds.
const DefaultDelta = 3250

// Bounds that keep all sums inside int64.
const (
	maxSeconds = 1 << 40
	maxGPUs    = 1 << 20
	maxService = 1 << 60
	never      = math.MaxInt64
)

// Job is one row of a trace. Running time does not depend on placement.
type Job struct {
	ID       string // name in the trace; not interpreted
	GPUs     int    // gang size, > 0; a job wider than the cluster is never started
	Submit   int64  // seconds, >= 0
	Duration int64  // running time on its GPUs, seconds, >= 0
}

// Params names a schedule of the released simulator.
//
//	dlas                Seconds
//	dlas-gpu            the zero value of the last five fields
//	dlas-gpu-05, -8     Knob 0.5, 8
//	dlas-gpu-gittins    Gittins and Samples
//	dlas-gpu-gittins-8  Gittins and Knob 8, which equals dlas-gpu-8
type Params struct {
	GPUs   int     // GPUs of the cluster, > 0
	Limits []int64 // queue limits, never decreasing; K = len(Limits)+1 queues. GPU-seconds, or seconds if Seconds

	Seconds bool    // dlas: queues by executed time in seconds, not by GPU-seconds
	Knob    float64 // PROMOTEKNOB: promote when waiting time >= floor(Knob × executed time); 0 or +Inf: never promote
	Gittins bool    // sort each queue by the tabulated Gittins index; without effect when Knob promotes
	Delta   int64   // Gittins quantum, GPU-seconds; 0 means DefaultDelta
	Samples []int64 // total service of earlier jobs, GPU-seconds, > 0, any order; needed by Gittins
	// Stop is asked before each event; true ends the run there. nil: it goes on to its end.
	Stop func() bool
}

// Outcome is what happened to one job. Times are in seconds on the clock of Job.Submit.
type Outcome struct {
	ID          string
	Start       int64 // first start; -1 if it never started
	End         int64 // completion; -1 if it did not finish
	Pending     int64 // all time spent waiting, settled at the last pass that saw the job
	Preemptions int   // running → waiting
	Promotions  int   // moves back to the first queue
	Finished    bool  // false for a job that never fitted: the released simulator drops it silently
}

// Validate reports the first field that Run cannot work with.
func (p Params) Validate() error {
	switch {
	case p.GPUs <= 0 || p.GPUs > maxGPUs:
		return fmt.Errorf("published: gpus %d, want 1 to %d", p.GPUs, maxGPUs)
	case math.IsNaN(p.Knob) || p.Knob < 0:
		return fmt.Errorf("published: promote knob %v, want >= 0", p.Knob)
	case p.Gittins && p.Seconds:
		return fmt.Errorf("published: gittins ranks by GPU-seconds, want seconds off")
	case p.Delta < 0 || p.Delta > maxSeconds:
		return fmt.Errorf("published: delta %d GPU-seconds, want 0 (default) to %d", p.Delta, maxSeconds)
	case p.ranked() && len(p.Samples) == 0:
		return fmt.Errorf("published: no samples, want at least 1 for gittins")
	}
	return p.validateLists()
}

func (p Params) validateLists() error {
	last := int64(0)
	for i, limit := range p.Limits {
		if limit < last || limit > maxService {
			return fmt.Errorf("published: limit %d is %d, want %d to %d", i, limit, last, maxService)
		}
		last = limit
	}
	for i, s := range p.Samples {
		if s <= 0 || s > maxSeconds {
			return fmt.Errorf("published: sample %d is %d GPU-seconds, want 1 to %d", i, s, maxSeconds)
		}
	}
	return nil
}

func (p Params) promotes() bool { return p.Knob > 0 && !math.IsInf(p.Knob, 1) }

// ranked says whether queues are sorted by index. The released simulator computes ranks only under the exact schedule
// name dlas-gpu-gittins, so with a promote knob in the name the Gittins part is off and the schedule equals
// dlas-gpu-KNOB.
func (p Params) ranked() bool { return p.Gittins && !p.promotes() }

func (j Job) validate() error {
	switch {
	case j.GPUs <= 0 || j.GPUs > maxGPUs:
		return fmt.Errorf("published: job %q: gpus %d, want 1 to %d", j.ID, j.GPUs, maxGPUs)
	case j.Submit < 0 || j.Submit > maxSeconds:
		return fmt.Errorf("published: job %q: submit %d s, want 0 to %d", j.ID, j.Submit, maxSeconds)
	case j.Duration < 0 || j.Duration > maxSeconds:
		return fmt.Errorf("published: job %q: duration %d s, want 0 to %d", j.ID, j.Duration, maxSeconds)
	}
	return nil
}

// stopped reports whether the run is to end.
func (p *Params) stopped() bool { return p.Stop != nil && p.Stop() }
