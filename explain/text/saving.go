package text

import (
	"fmt"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Unstoppable says why job j, which its system protects, is not stopped for others.
func Unstoppable(j *sched.Job) string {
	switch {
	case j.Spec.Preempt == sched.NeverPreempt:
		return "its user wants that"
	case j.Evidence == sched.SavesNot:
		return "it was asked to save and saved nothing"
	case j.Evidence == sched.ResumesNot:
		return "it saves, but started from zero all the same"
	}
	return "nothing shows that it saves"
}

// stoppable says by what job j may be stopped for others.
func stoppable(j *sched.Job) string {
	if j.Spec.Preempt == sched.AlwaysPreempt {
		return "its user allows that"
	}
	switch j.Evidence {
	case sched.Declared:
		return "its submitter says how it saves"
	case sched.Seen:
		return "it was seen to save"
	case sched.Proven:
		return "it went on from what it had saved"
	}
	return "this system stops any job"
}

// Stops says whether the job may be stopped for others, by what evidence, what a stop now would cost, and what others
// have cost so far.
func (r *Renderer) Stops(id sched.JobID, leave sched.Unsaved) string {
	j := r.View.Job(id)
	said := "may be stopped for others: " + stoppable(j)
	if leave.Protects(j) {
		said = "is not stopped for others: " + Unstoppable(j)
	}
	if stake := Stake(r.View, j); stake >= time.Second {
		said += fmt.Sprintf("; a stop now would lose %s of its run", Work(stake))
	}
	if l := j.Loss(); l.Stops > 0 {
		times := "a stop"
		if l.Stops > 1 {
			times = fmt.Sprintf("%d stops", l.Stops)
		}
		said += fmt.Sprintf("; %s lost so far in %s", r.work(j, l.Work), times)
		if l.Unproven >= time.Second && !j.Evidence.Shows() {
			said += fmt.Sprintf(", and %s that no one saw saved", r.work(j, l.Unproven))
		}
	}
	return said
}

// work says an amount of work of j, with the width it counts on where that is not the one that j has.
func (r *Renderer) work(j *sched.Job, d time.Duration) string {
	if held := int32(len(j.GPUs)); held == j.Unit() || held == 0 && j.Spec.GPUs == sched.Rigid(int(j.Unit())) {
		return Work(d)
	}
	return Work(d) + " of work on " + r.units(int(j.Unit()))
}

// Stake is the time of its run that j, which runs, loses if it is stopped now: all of the latest attempt where nothing
// shows that it saves, else none that is known of.
func Stake(v *sched.View, j *sched.Job) time.Duration {
	if j.Attempt != sched.Running || j.Evidence.Shows() {
		return 0
	}
	return max(v.Now.Sub(j.LastStart), 0)
}

// Work says an amount of work for people, to the second.
func Work(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}

// OffWidth says what becomes of a job that runs on so many GPUs, as many as it does not take any more.
func OffWidth(gpus int, stake time.Duration) string {
	said := fmt.Sprintf("is stopped, as it runs on %d, and waits for its turn", gpus)
	if stake >= time.Second {
		said += "; it loses " + Work(stake) + " of its run"
	}
	return said
}

// Unranked says that j has a priority, at which a system does not look; nothing of a job without one.
func Unranked(j *sched.Job, system string) (notes []string) {
	if j.Spec.Priority == 0 {
		return nil
	}
	return []string{fmt.Sprintf("has priority %d, at which %s does not look", j.Spec.Priority, system)}
}

// StoppedAllTheSame says of j, whose user wants that it is not stopped for others, that a system which stops any job
// may do so; nothing of others.
func StoppedAllTheSame(j *sched.Job) (notes []string) {
	if j.Spec.Preempt != sched.NeverPreempt {
		return nil
	}
	return []string{"may be stopped for others although it says preemptible: false, which plays no part " +
		"under unsaved=stop"}
}

// Left says what a submitter may not expect: that j is not stopped for others, or not resized. unit is what it holds:
// GPU or slot.
func Left(j *sched.Job, leave sched.Unsaved, unit string) (notes []string) {
	if !leave.Protects(j) || j.Spec.Preempt == sched.NeverPreempt {
		return nil
	}
	notes = append(notes, "will not be stopped for others: "+Unstoppable(j))
	if s := j.Spec.GPUs; s.Min < s.Max {
		notes = append(notes, fmt.Sprintf("starts on the %d %ss that it asks for, and keeps them until it is seen "+
			"to save", s.Want, unit))
	}
	return notes
}
