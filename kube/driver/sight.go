package driver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/sched"
)

// stage says how far the pod of a rank is.
type stage uint8

// Stages. What ended by itself succeeded or failed; what others ended, or what lost its machine, is lost.
const (
	absent  stage = iota // not seen yet
	pending              // and its containers do not run yet
	up
	leaving // told to end by us
	succeeded
	failed
	lost
)

// sight is what is seen of one rank.
type sight struct {
	stage stage
	over  bool      // no process of it is left
	code  int32     // of the container that trains, once it ended
	at    time.Time // when it ended, failed or was lost, as far as is known
	text  string    // why it is where it is, for people
	waits string    // of a pending one: the kind of thing that it waits for, one word; "" = it may be on its way
	fault bool      // of a pending one: no GPU is to blame
	unrun bool      // of a lost one: its node would not have it, or lost sight of it
}

// deletedByOthers is what is told of a pod that others delete, whether it was seen to go or is gone.
const deletedByOthers = "somebody else deleted pod "

// look returns what a pod shows of its rank. ours says that we told it to end, nodeGone that its node is no more.
func look(p *corev1.Pod, ours, nodeGone bool) sight {
	terminal := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	s := sight{over: terminal}
	state := trainer(p)
	if t := state.Terminated; t != nil {
		s.code, s.at = t.ExitCode, t.FinishedAt.Time
	}
	why, when, disrupted := disruption(p)
	switch deleted := p.DeletionTimestamp != nil; {
	case nodeGone && !terminal:
		s.stage, s.text = lost, fmt.Sprintf("node %s is gone", p.Spec.NodeName)
	case deleted && ours:
		s.stage, s.over = leaving, false
	case disrupted:
		s.stage, s.at, s.text, s.over = lost, when, why, terminal && !deleted
	case deleted:
		s.stage, s.at, s.text, s.over = lost, askedAt(p), deletedByOthers+p.Name, false
	case p.Status.Phase == corev1.PodSucceeded || state.Terminated != nil && s.code == 0:
		s.stage = succeeded
	case state.Terminated != nil && slices.Contains(unseen, state.Terminated.Reason): // the exit code is made up
		s.stage, s.unrun, s.text = lost, true, fmt.Sprintf("pod %s ended, and nobody saw how%s", p.Name, brackets(state.Terminated.Reason, state.Terminated.Message))
	case state.Terminated != nil:
		s.stage, s.text = failed, fmt.Sprintf("pod %s: exit code %d%s", p.Name, s.code, brackets(state.Terminated.Reason, lastLine(state.Terminated.Message)))
	case terminal: // it was refused, or its kubelet lost sight of it: no process of the job said so
		s.stage, s.unrun, s.text = lost, true, fmt.Sprintf("pod %s failed%s", p.Name, brackets(p.Status.Reason, p.Status.Message))
	case p.Status.Phase == corev1.PodRunning:
		s.stage = up
	default:
		s.stage = pending
		s.text, s.waits, s.fault = waitsFor(p)
	}
	return s
}

// unseen are the reasons that stand for an exit that containerd or the kubelet were not there to see.
var unseen = []string{"Unknown", "ContainerStatusUnknown"}

// trainer returns the state of the first container, which trains.
func trainer(p *corev1.Pod) corev1.ContainerState {
	if len(p.Spec.Containers) == 0 {
		return corev1.ContainerState{}
	}
	for i := range p.Status.ContainerStatuses {
		if c := &p.Status.ContainerStatuses[i]; c.Name == p.Spec.Containers[0].Name {
			return c.State
		}
	}
	return corev1.ContainerState{}
}

// disruption returns who ended a pod from outside, and when.
func disruption(p *corev1.Pod) (text string, at time.Time, ok bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("pod %s was ended from outside%s", p.Name, brackets(c.Reason, c.Message)), c.LastTransitionTime.Time, true
		}
	}
	if p.Status.Phase == corev1.PodFailed && p.Status.Reason == "Evicted" {
		return fmt.Sprintf("pod %s was ended from outside%s", p.Name, brackets(p.Status.Reason, p.Status.Message)), askedAt(p), true
	}
	return "", time.Time{}, false
}

// askedAt returns when a pod was told to end: its deletion is due a grace period later.
func askedAt(p *corev1.Pod) time.Time {
	if p.DeletionTimestamp == nil {
		return time.Time{}
	}
	var grace int64
	if p.DeletionGracePeriodSeconds != nil {
		grace = *p.DeletionGracePeriodSeconds
	}
	return p.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
}

// faults are the reasons for which a container does not start that lie in what its user wrote.
var faults = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError"}

// waitsFor returns what a pending pod waits for, the kind of it, and whether that has nothing to do with its GPUs.
func waitsFor(p *corev1.Pod) (text, kind string, fault bool) {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if w := list[i].State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
				kind = w.Reason
				if strings.Contains(kind, "Image") { // one and the same goes to and fro between two reasons
					kind = "Image"
				}
				return fmt.Sprintf("pod %s waits%s", p.Name, brackets(w.Reason, w.Message)), kind, slices.Contains(faults, w.Reason)
			}
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s waits%s", p.Name, brackets(c.Reason, c.Message)), c.Reason, !strings.Contains(c.Message, noDevice)
		}
	}
	if p.Spec.NodeName == "" {
		return fmt.Sprintf("pod %s does not run yet", p.Name), "", true
	}
	return fmt.Sprintf("pod %s does not run yet: node %s makes its volumes and images ready; its Events tell what is in the way", p.Name, p.Spec.NodeName), waitsReady, false
}

// waitsReady is the kind of wait of a pod whose kubelet says no more than that it is at it.
const waitsReady = "Ready"

// noDevice is what kube-scheduler says where the GPUs of a claim cannot be had. For whatever else it refuses a node (no such volume,
// too few CPUs, a selector), no GPU is to blame.
const noDevice = "cannot allocate all claims"

// lastLine returns the last line of a text that is not blank.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

func brackets(reason, message string) string {
	switch {
	case reason == "" && message == "":
		return ""
	case message == "":
		return " (" + reason + ")"
	case reason == "":
		return " (" + message + ")"
	}
	return " (" + reason + ": " + message + ")"
}

// fate is how an attempt is going to end, once no process of it is left, although nobody ordered it.
type fate struct {
	outcome sched.Outcome // NoOutcome: its start failed
	code    int32
	text    string
	suspect []int // ranks whose GPUs may be to blame that the start failed
}

// cause returns why an attempt is going to end, nil if it goes on. Of several things that went wrong the first counts, as it is what
// made the others: at the same instant the loss of a rank. silent says that a node of the attempt does not answer: then a rank
// that failed did so for want of the others. started says that all ranks were up.
func cause(ranks []sight, silent, started bool) *fate {
	first := -1
	for i, s := range ranks {
		if s.stage != lost && s.stage != failed {
			continue
		}
		if first < 0 || cmp.Or(s.at.Compare(ranks[first].at), -cmp.Compare(s.stage, ranks[first].stage)) < 0 {
			first = i
		}
	}
	switch {
	case first < 0 && !slices.ContainsFunc(ranks, func(s sight) bool { return s.stage != succeeded }):
		return &fate{outcome: sched.Finished}
	case first < 0:
		return nil
	case ranks[first].unrun && !started:
		return &fate{text: ranks[first].text, suspect: []int{first}}
	case ranks[first].stage == lost:
		return &fate{outcome: sched.NodeLost, text: ranks[first].text}
	case silent && len(ranks) > 1:
		return &fate{outcome: sched.NodeLost, code: ranks[first].code, text: ranks[first].text + "; a node of another rank does not answer"}
	}
	return &fate{outcome: sched.Failed, code: ranks[first].code, text: ranks[first].text}
}

// tooLate is the fate of an attempt whose ranks are not all up in time.
func tooLate(ranks []sight, within time.Duration) *fate {
	f := new(fate)
	n := 0
	for i, s := range ranks {
		if hasRun(s) {
			continue
		}
		n++
		if !s.fault {
			f.suspect = append(f.suspect, i)
		}
		if f.text == "" {
			f.text = s.text
		}
	}
	f.text = fmt.Sprintf("%d of %d ranks not up after %v: %s", n, len(ranks), within, cmp.Or(f.text, "no pod is there"))
	return f
}

// hasRun reports whether the process of a rank runs or ran.
func hasRun(s sight) bool { return s.stage == up || s.stage == succeeded || s.stage == failed }

// all reports whether all ranks are so.
func all(ranks []sight, so func(sight) bool) bool {
	return !slices.ContainsFunc(ranks, func(s sight) bool { return !so(s) })
}
