package server

import (
	"maps"

	"github.com/trainyard/trainyard/sched"
)

// Causes for which GPU time comes to nothing: what a job has to do again.
const (
	wastedForOthers = "stopped-for-others"
	wastedByUser    = "stopped-by-user" // paused or put back in the queue
	wastedByFailure = "failed"          // and is tried again
	wastedByNode    = "node-lost"
)

// wasted adds up the GPU time that came to nothing for other causes than stops for others, which the View itself has.
// It belongs to the engine's goroutine.
type wasted struct {
	live    map[sched.JobID]sched.Job // as they stood after their last event, those with an attempt
	seconds map[string]float64        // by cause
}

// restart forgets the attempts that were known, for those of v; nil: none.
func (w *wasted) restart(v *sched.View) {
	w.live = make(map[sched.JobID]sched.Job)
	if w.seconds == nil {
		w.seconds = map[string]float64{wastedByUser: 0, wastedByFailure: 0, wastedByNode: 0}
	}
	if v == nil {
		return
	}
	for id := range v.Jobs {
		w.note(v, sched.JobID(id))
	}
}

// note notes how a job stands.
func (w *wasted) note(v *sched.View, id sched.JobID) {
	if j := v.Jobs[id]; j.HoldsDevices() {
		j.Detach()
		w.live[id] = j
	} else {
		delete(w.live, id)
	}
}

// log takes in an event that v has.
func (w *wasted) log(v *sched.View, e *sched.Event) {
	if e.Job < 0 || int(e.Job) >= len(v.Jobs) {
		return
	}
	j, known := w.live[e.Job]
	if known && e.Kind == sched.AttemptEnded && v.Jobs[e.Job].State != sched.Done {
		if cause := wastedBy(&j, e.Outcome); cause != "" {
			lost, _ := j.LosesBy(max(e.Happened(), j.LastStart), e.Work)
			w.seconds[cause] += float64(sched.GPUTime(int(j.Unit()), lost))
		}
	}
	w.note(v, e.Job)
}

// wastedBy is the cause of what the end of an attempt of j cost; "" = another one counts it, or none is lost.
func wastedBy(j *sched.Job, o sched.Outcome) string {
	switch {
	case o == sched.Failed:
		return wastedByFailure
	case o == sched.NodeLost:
		return wastedByNode
	case o == sched.Preempted && !j.ForOthers(o):
		return wastedByUser
	}
	return ""
}

// all returns the GPU seconds by cause.
func (w *wasted) all() map[string]float64 { return maps.Clone(w.seconds) }
