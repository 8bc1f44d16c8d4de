package serve

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// follower writes in lines what happens to jobs, once it is durable.
type follower struct {
	w     io.Writer
	unit  string          // what jobs hold, in a word
	state string          // the state folder, as users call it
	lines strings.Builder // of the batch under way
}

var (
	_ eventlog.Sink    = (*follower)(nil)
	_ eventlog.Batcher = (*follower)(nil)
)

func newFollower(w io.Writer, unit, state string) *follower {
	return &follower{w: w, unit: unit, state: state}
}

// BeginBatch does nothing.
func (f *follower) BeginBatch() {}

// Log notes what an event means to users.
func (f *follower) Log(v *sched.View, e *sched.Event) {
	if e.Job == sched.None {
		return
	}
	if text := f.tale(v, e); text != "" {
		fmt.Fprintf(&f.lines, "%8.1fs  job %d %s: %s\n", time.Duration(e.Time).Seconds(), e.Job,
			v.Jobs[e.Job].Spec.Name, text)
	}
}

// EndBatch says what was noted.
func (f *follower) EndBatch() error {
	if f.lines.Len() > 0 {
		_, _ = io.WriteString(f.w, f.lines.String()) // a terminal that is gone does not stop jobs
		f.lines.Reset()
	}
	return nil
}

// tale says what an event about a job means to users, "" if nothing.
func (f *follower) tale(v *sched.View, e *sched.Event) string {
	switch e.Kind {
	case sched.JobArrived:
		return "accepted, " + f.width(e.Spec.GPUs)
	case sched.AttemptStarted:
		return fmt.Sprintf("attempt %d runs on %s", e.Attempt, f.list(v.Jobs[e.Job].GPUs))
	case sched.Ordered:
		switch {
		case sched.ActionKind(e.Code) != sched.Stop:
		case len(v.Jobs[e.Job].Target) > 0:
			return "is asked to save, to go on on " + f.list(v.Jobs[e.Job].Target)
		default:
			return "is asked to stop: " + e.Outcome.String()
		}
	case sched.AttemptEnded:
		text := ended(&v.Jobs[e.Job], e)
		if e.Outcome == sched.Failed {
			text += "; see " + shim.State(f.state).RunDir(int32(e.Job), e.Attempt).Output()
		}
		return text
	case sched.StartFailed:
		return fmt.Sprintf("attempt %d could not start: %s", e.Attempt, e.Text)
	case sched.JobCommanded:
		if j := &v.Jobs[e.Job]; j.State == sched.Done && j.End == e.Time && sched.Command(e.Code) == sched.CancelJob {
			return "cancelled"
		}
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
	if len(j.Target) > 0 {
		return fmt.Sprintf("attempt %d ended: %s; it goes on", e.Attempt, text)
	}
	return fmt.Sprintf("attempt %d ended: %s; it waits", e.Attempt, text)
}

// width says how many units a job may hold.
func (f *follower) width(r sched.Range) string {
	if r.Min == r.Max {
		return term.Counted(int(r.Want), f.unit)
	}
	return fmt.Sprintf("%s %ss", term.Widths(int(r.Min), int(r.Max)), f.unit)
}

// list lists units by number.
func (f *follower) list(gpus []sched.GPUID) string {
	words, unit := make([]string, len(gpus)), f.unit
	for i, g := range gpus {
		words[i] = fmt.Sprint(g)
	}
	if len(gpus) > 1 {
		unit += "s"
	}
	return unit + " " + strings.Join(words, ", ")
}
