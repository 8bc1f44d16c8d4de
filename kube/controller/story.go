package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	driverattempts "github.com/trainyard/trainyard/kube/driver/attempts"
	"github.com/trainyard/trainyard/sched"
)

// Reasons of the Events that report the life of a job. Warnings are StartFailed, Failed, NodeLost, Rejected and Held.
const (
	// it has waited for some seconds; again where it waits for something of another kind
	reportedQueued      = "Queued"
	reportedStarted     = "Started"   // all ranks of an attempt are up
	reportedPreempted   = "Preempted" // its attempt gave its GPUs up, and it waits
	reportedResized     = "Resized"   // ... and it goes on at another width
	reportedMoved       = "Moved"     // ... or elsewhere
	reportedPaused      = "Paused"
	reportedResumed     = "Resumed"
	reportedHeld        = "Held"     // the API server refuses its pods
	reportedReleased    = "Released" // ... and takes them now
	reportedFinished    = "Finished"
	reportedStartFailed = "StartFailed"
	reportedFailed      = "Failed"
	reportedNodeLost    = "NodeLost"
	reportedRejected    = "Rejected"
	reportedUnreadable  = "Unreadable" // its record is, and no one decides about it
)

// say has something reported of a job, once the batch is durable. A cancelled job is gone: no one looks at it.
func (s *store) say(id sched.JobID, kind, reason, said string) {
	ref := refOf(s.v.Jobs[id].Spec)
	if ref.uid == "" { // forgotten
		return
	}
	s.news.notes = append(s.news.notes, note{kind: kind, reason: reason, text: said,
		about: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(),
			Kind: "TrainingJob", Namespace: ref.name.Namespace, Name: ref.name.Name, UID: ref.uid}})
}

// news are the notes of a batch, which are written once it is durable.
type news struct {
	report func(...note) // see Options
	notes  []note
}

// spread has the notes of a batch written that is durable now.
func (n *news) spread() {
	if len(n.notes) > 0 {
		n.report(n.notes...)
	}
	n.notes = n.notes[:0]
}

// story notes what an event that was folded means to those who follow the life of its job.
func (s *store) story(e *sched.Event) {
	const normal, warning = corev1.EventTypeNormal, corev1.EventTypeWarning
	switch e.Kind {
	case sched.AttemptStarted:
		j := &s.v.Jobs[e.Job]
		s.say(e.Job, normal, reportedStarted, fmt.Sprintf("attempt %d runs on %s: %s", e.Attempt, gpus(len(j.GPUs)),
			text.Places(s.v, j.GPUs)))
	case sched.StartFailed:
		s.say(e.Job, warning, reportedStartFailed, fmt.Sprintf("attempt %d did not start, %d in a row: %s", e.Attempt,
			s.v.Jobs[e.Job].StartFailures, e.Text))
	case sched.AttemptEnded:
		s.storyOfEnd(e)
	case sched.Rejected:
		s.say(e.Job, warning, reportedRejected, sentences(s.v, time.Time{}).Refusal(e.Why))
	case sched.JobCommanded:
		j := &s.v.Jobs[e.Job]
		switch sched.Command(e.Code) {
		case sched.PauseJob:
			if hold := s.jobs[e.Job].hold; hold != "" {
				s.say(e.Job, warning, reportedHeld, hold)
			} else if !j.HoldsDevices() && j.State != sched.Done { // else it is reported once it has stopped
				s.say(e.Job, normal, reportedPaused, text.Suspended)
			}
		case sched.ResumeJob:
			if mine := s.jobs[e.Job]; mine.hold != "" {
				mine.hold = ""
				s.say(e.Job, normal, reportedReleased, "the API server takes its pods, or there is room for it")
				return
			}
			s.say(e.Job, normal, reportedResumed, "its user lets it go on")
		}
	}
}

// storyOfEnd reports the end of an attempt.
func (s *store) storyOfEnd(e *sched.Event) {
	const normal, warning = corev1.EventTypeNormal, corev1.EventTypeWarning
	j, had := &s.v.Jobs[e.Job], s.jobs[e.Job].held
	saved, _ := strings.CutPrefix(e.Text, driverattempts.AsOrdered) // what is said of its work
	switch {
	case e.Outcome == sched.Finished:
		s.say(e.Job, normal, reportedFinished,
			fmt.Sprintf("after %v of GPU time in %s%s", time.Duration(float64(j.Service)*1e9).Round(time.Second),
				attempts(j.Attempts), lostWork(s.jobs[e.Job].lost)))
	case e.Outcome == sched.Failed && j.State == sched.Done:
		s.say(e.Job, warning, reportedFailed, e.Text)
	case e.Outcome == sched.Failed:
		s.say(e.Job, warning, reportedFailed, fmt.Sprintf("%s; it is tried again, %d of %d times", e.Text, j.Failures,
			j.Spec.Retries))
	case e.Outcome == sched.NodeLost:
		s.say(e.Job, warning, reportedNodeLost, e.Text)
	case j.State == sched.Done: // cancelled
	case s.jobs[e.Job].hold != "": // why follows
	case j.Paused:
		s.say(e.Job, normal, reportedPaused, text.Suspended+saved)
	case len(j.Target) == 0:
		s.say(e.Job, normal, reportedPreempted, s.preemptor(e.Job, had)+saved)
	case len(j.Target) != len(had):
		s.say(e.Job, normal, reportedResized, fmt.Sprintf("from %d to %s%s", len(had), gpus(len(j.Target)), saved))
	default:
		s.say(e.Job, normal, reportedMoved,
			fmt.Sprintf("from %s to %s%s", text.Places(s.v, had), text.Places(s.v, j.Target), saved))
	}
}

// preemptor says for whom a job gave up the GPUs that it had, or else why.
func (s *store) preemptor(id sched.JobID, had []sched.GPUID) string {
	var takers []sched.JobID
	for _, other := range s.live {
		j := &s.v.Jobs[other]
		takes := func(g sched.GPUID) bool { return slices.Contains(had, g) && !slices.Contains(j.GPUs, g) }
		if other != id && slices.ContainsFunc(j.Target, takes) {
			takers = append(takers, other)
		}
	}
	if len(takers) > 0 {
		return "its GPUs are for " + sentences(s.v, time.Time{}).Names(takers)
	}
	for _, g := range had {
		if n := &s.v.Nodes[s.v.GPUs[g].Node]; n.State != sched.NodeUp {
			return fmt.Sprintf("node %s is to be empty", n.Spec.Name)
		}
	}
	return "the policy has others use its GPUs"
}

// wait is for what kind of thing a job waits, as far as that changes whom to ask about it.
type wait uint8

// Kinds of waits. Of those that are reported otherwise, or soon over, nothing is reported.
const (
	noWait    wait = iota
	anyWait        // it was reported of, by a leader before this one or before it was known for what
	forTurn        // others hold the GPUs, or come first
	forNodes       // they may be rented
	forRepair      // they are out of use
	forQuota
	forOthers // jobs on which it depends
	forTime
	forEver // it fits nowhere
)

func waitOf(c explain.Code) wait {
	switch c {
	case explain.WaitBusy, explain.WaitFragmented, explain.WaitBehind, explain.WaitReserved, explain.WaitUngranted,
		explain.WaitUndecided, explain.WaitSystem:
		return forTurn
	case explain.WaitRented:
		return forNodes
	case explain.WaitUnusable:
		return forRepair
	case explain.WaitQuota:
		return forQuota
	case explain.WaitAfter, explain.WaitArray:
		return forOthers
	case explain.WaitUntil:
		return forTime
	case explain.WaitTooWide, explain.WaitNeverFits:
		return forEver
	}
	return noWait
}

// queue says why a job waits, where that is of another kind than what was reported last. The code of a reason that was
// not looked for in the order of the system says that the job waits, and not for what.
func (s *store) queue(id sched.JobID, c explain.Code, full bool, reason string) {
	is, was := waitOf(c), &s.jobs[id].wait
	if s.v.Jobs[id].HoldsDevices() { // it has to give them up first
		is = noWait
	}
	if is != noWait && !full {
		is = anyWait
	}
	switch {
	case is == *was || is == anyWait && *was != noWait:
		return
	case is == noWait:
		s.say(id, "", "", "")
	case *was != anyWait:
		s.say(id, corev1.EventTypeNormal, reportedQueued, reason)
	}
	*was = is
}

// waited is the wait of a job that an earlier leader left: what that one reported is not reported again.
func waited(j *sched.Job) wait {
	if j.State == sched.Waiting || j.State == sched.Held {
		return anyWait
	}
	return noWait
}

func gpus(n int) string { return counted(n, "GPU") }

func attempts(n int32) string { return counted(int(n), "attempt") }

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func lostWork(d time.Duration) string {
	if d = d.Round(time.Second); d == 0 {
		return ""
	}
	return fmt.Sprintf(", %v of it without use", d)
}
