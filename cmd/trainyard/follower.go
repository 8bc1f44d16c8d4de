package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/sched"
)

// follower tells in lines what happens to jobs, once it is durable.
type follower struct {
	w     io.Writer
	lines strings.Builder // of the batch under way
}

var (
	_ engine.Sink    = (*follower)(nil)
	_ engine.Batcher = (*follower)(nil)
)

func newFollower(w io.Writer) *follower { return &follower{w: w} }

// BeginBatch does nothing.
func (f *follower) BeginBatch() {}

// Log notes what an event means to users.
func (f *follower) Log(v *sched.View, e *sched.Event) {
	if text := tale(v, e); text != "" {
		fmt.Fprintf(&f.lines, "%8.1fs  job %d %s: %s\n", time.Duration(e.Time).Seconds(), e.Job, v.Jobs[e.Job].Spec.Name, text)
	}
}

// EndBatch tells what was noted.
func (f *follower) EndBatch() error {
	if f.lines.Len() > 0 {
		_, _ = io.WriteString(f.w, f.lines.String()) // a terminal that is gone does not stop jobs
		f.lines.Reset()
	}
	return nil
}

// tale says what an event means to users, "" if nothing.
func tale(v *sched.View, e *sched.Event) string {
	switch e.Kind {
	case sched.JobArrived:
		return "accepted, " + widthText(e.Spec.GPUs)
	case sched.AttemptStarted:
		return fmt.Sprintf("attempt %d runs on %s", e.Attempt, gpuList(v.Jobs[e.Job].GPUs))
	case sched.Ordered:
		if sched.ActionKind(e.Code) == sched.Stop {
			return "is told to stop: " + e.Outcome.String()
		}
	case sched.AttemptEnded:
		return ended(&v.Jobs[e.Job], e)
	case sched.StartFailed:
		return fmt.Sprintf("attempt %d could not start: %s", e.Attempt, e.Text)
	case sched.Refused:
		return "refused: " + e.Text
	}
	return ""
}

// ended says how an attempt ended.
func ended(j *sched.Job, e *sched.Event) string {
	text := e.Outcome.String()
	if e.Code != 0 {
		text += fmt.Sprintf(" with exit code %d", e.Code)
	}
	if e.Text != "" {
		text += " (" + e.Text + ")"
	}
	if j.State == sched.Done {
		return text
	}
	return fmt.Sprintf("attempt %d ended: %s; it waits", e.Attempt, text)
}

func widthText(r sched.Range) string {
	if r.Min == r.Max {
		return counted(int(r.Want), "GPU")
	}
	return fmt.Sprintf("%d to %d GPUs", r.Min, r.Max)
}

// gpuList lists GPUs by number.
func gpuList(gpus []sched.GPUID) string {
	words := make([]string, len(gpus))
	for i, g := range gpus {
		words[i] = fmt.Sprint(g)
	}
	return "GPU " + strings.Join(words, ", ")
}
