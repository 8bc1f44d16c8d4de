package attempts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/inventory"
)

// stage says how far the pod of a rank is.
type stage uint8

// Stages. What ended by itself succeeded or failed; what others ended, or what lost its machine, is lost.
const (
	absent  stage = iota // not seen yet
	pending              // and its containers do not run yet
	up
	leaving // we deleted it
	succeeded
	failed
	lost
)

// podStatus is what the pod of one rank shows.
type podStatus struct {
	stage stage
	over  bool      // no process of it is left
	code  int32     // of the container that trains, once it ended
	at    time.Time // when it ended, failed or was lost, as far as is known
	text  string    // why it is where it is, for people
	waits string    // of a pending one: the kind of thing that it waits for, one word; "": it may be on its way
	fault bool      // of a pending one: no GPU is to blame
	unrun bool      // of a lost one: its node did not take it, or does not know what became of it
}

// deletedByOthers is what the text of a pod that others delete starts with, whether it was seen to go or is gone.
const deletedByOthers = "someone else deleted pod "

// statusOf returns what a pod shows of its rank. ours says that we deleted it, nodeGone that its node is no more. A pod
// that has succeeded or failed is over, whatever finalizers keep its object: they are anyone's.
func statusOf(p *corev1.Pod, ours, nodeGone bool) podStatus {
	terminal := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	s := podStatus{over: terminal}
	state, others := trainer(p)
	if t := state.Terminated; t != nil {
		s.code, s.at = t.ExitCode, t.FinishedAt.Time
	}
	why, when, disrupted := disruption(p)
	switch deleted := p.DeletionTimestamp != nil; {
	case nodeGone && !terminal:
		s.stage, s.text = lost, fmt.Sprintf("node %s is gone", p.Spec.NodeName)
	case deleted && ours:
		s.stage = leaving
	case disrupted:
		s.stage, s.at, s.text = lost, when, why
	case deleted:
		s.stage, s.at, s.text = lost, deletedAt(p), deletedByOthers+p.Name
	case pastDeadline(p): // whatever the process made of its SIGTERM
		s.stage, s.text = failed, fmt.Sprintf("pod %s ran longer than its activeDeadlineSeconds", p.Name)
	case state.Terminated != nil:
		s.ended(p, state.Terminated, others)
	default:
		s.untouched(p)
	}
	return s
}

// ended notes what a pod shows whose container that trains has ended. others says that other containers have not.
func (s *podStatus) ended(p *corev1.Pod, t *corev1.ContainerStateTerminated, others bool) {
	switch {
	case p.Status.Phase == corev1.PodRunning && !others: // the kubelet has yet to say how the pod ended
		s.stage = up
	case p.Status.Phase == corev1.PodSucceeded || s.code == 0 && p.Status.Reason == "":
		s.stage = succeeded
	case slices.Contains(unseen, t.Reason): // the exit code is made up
		s.stage, s.unrun = lost, true
		s.text = fmt.Sprintf("pod %s ended, and no one saw how%s", p.Name, brackets(t.Reason, t.Message))
	case s.code != 0:
		s.stage = failed
		s.text = fmt.Sprintf("pod %s: exit code %d%s", p.Name, s.code, brackets(t.Reason, lastLine(t.Message)))
	default:
		s.untouched(p)
	}
}

// untouched notes what a pod shows by its phase.
func (s *podStatus) untouched(p *corev1.Pod) {
	switch {
	case p.Status.Phase == corev1.PodSucceeded:
		s.stage = succeeded
	case p.Status.Phase == corev1.PodFailed: // refused, or its kubelet does not know it: no process of the job said so
		s.stage, s.unrun = lost, true
		s.text = fmt.Sprintf("pod %s failed%s", p.Name, brackets(p.Status.Reason, p.Status.Message))
	case p.Status.Phase == corev1.PodRunning:
		s.stage = up
	default:
		s.stage = pending
		s.text, s.waits, s.fault = waitsFor(p)
	}
}

// pastDeadline reports whether a pod failed because it ran longer than its user allows a pod to.
func pastDeadline(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed && p.Status.Reason == "DeadlineExceeded"
}

// unseen are the reasons that stand for an exit which containerd or the kubelet were not there to see.
var unseen = []string{"Unknown", "ContainerStatusUnknown"}

// trainer returns the state of the container that trains, and whether other containers are not over.
func trainer(p *corev1.Pod) (state corev1.ContainerState, others bool) {
	name := trainerOf(p)
	for i := range p.Status.ContainerStatuses {
		if c := &p.Status.ContainerStatuses[i]; c.Name == name {
			state = c.State
		} else {
			others = others || c.State.Terminated == nil
		}
	}
	return state, others
}

// trainerOf returns the name of the container that trains.
func trainerOf(p *corev1.Pod) string {
	if name := p.Annotations[v1alpha1.AnnotationContainer]; name != "" || len(p.Spec.Containers) == 0 {
		return name
	}
	return p.Spec.Containers[0].Name
}

// disruption returns who ended a pod from outside, and when.
func disruption(p *corev1.Pod) (text string, at time.Time, ok bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			text = fmt.Sprintf("pod %s was ended from outside%s", p.Name, brackets(c.Reason, c.Message))
			return text, c.LastTransitionTime.Time, true
		}
	}
	if p.Status.Phase == corev1.PodFailed && p.Status.Reason == "Evicted" {
		text = fmt.Sprintf("pod %s was ended from outside%s", p.Name, brackets(p.Status.Reason, p.Status.Message))
		return text, deletedAt(p), true
	}
	return "", time.Time{}, false
}

// deletedAt returns when a pod was asked to end: its deletion is due a grace period later.
func deletedAt(p *corev1.Pod) time.Time {
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
var faults = []string{
	"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError",
	"CreateContainerError",
}

// waitsFor returns what a pending pod waits for, the kind of it, and whether that has nothing to do with its GPUs.
func waitsFor(p *corev1.Pod) (text, kind string, fault bool) {
	if w := waiting(p); w != nil {
		kind = w.Reason
		if strings.Contains(kind, "Image") { // one and the same goes to and fro between two reasons
			kind = "Image"
		}
		text = fmt.Sprintf("pod %s waits%s", p.Name, brackets(w.Reason, w.Message))
		return text, kind, slices.Contains(faults, w.Reason)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			text = fmt.Sprintf("pod %s waits%s", p.Name, brackets(c.Reason, c.Message))
			return text, c.Reason, !isDevice(c.Message)
		}
	}
	if p.Spec.NodeName == "" {
		return fmt.Sprintf("pod %s does not run yet", p.Name), "", true
	}
	text = fmt.Sprintf("pod %s does not run yet: node %s makes its volumes and images ready; "+
		"its Events say what is in the way", p.Name, p.Spec.NodeName)
	return text, waitsReady, false
}

// waiting returns what the first container waits for that says so, nil if none does.
func waiting(p *corev1.Pod) *corev1.ContainerStateWaiting {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			w := list[i].State.Waiting
			if w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
				return w
			}
		}
	}
	return nil
}

// waitsReady is the kind of wait of a pod whose kubelet says no more than that it is at it.
const waitsReady = "Ready"

// isDevice reports whether kube-scheduler says that the GPUs of a pod cannot be had: those of a claim, or so many. If
// it refuses a node for another reason (no such volume, too few CPUs, a selector), no GPU is to blame.
func isDevice(message string) bool {
	return strings.Contains(message, "cannot allocate all claims") ||
		strings.Contains(message, "Insufficient "+string(inventory.ResourceGPU))
}

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

// hasRun reports whether the process of a rank runs or ran.
func hasRun(s podStatus) bool { return s.stage == up || s.stage == succeeded || s.stage == failed }

// all reports whether all ranks are so.
func all(ranks []podStatus, so func(podStatus) bool) bool {
	return !slices.ContainsFunc(ranks, func(s podStatus) bool { return !so(s) })
}

func isOver(s podStatus) bool { return s.over }
