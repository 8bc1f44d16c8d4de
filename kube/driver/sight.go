package driver

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
	state, others := trainer(p)
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
	case p.Status.Phase == corev1.PodFailed && p.Status.Reason == deadlineExceeded: // whatever it made of its SIGTERM
		s.stage, s.text = failed, fmt.Sprintf("pod %s ran longer than its activeDeadlineSeconds", p.Name)
	case state.Terminated != nil && p.Status.Phase == corev1.PodRunning && !others: // the kubelet has yet to say how the pod ended
		s.stage = up
	case p.Status.Phase == corev1.PodSucceeded || state.Terminated != nil && s.code == 0 && p.Status.Reason == "":
		s.stage = succeeded
	case state.Terminated != nil && slices.Contains(unseen, state.Terminated.Reason): // the exit code is made up
		s.stage, s.unrun, s.text = lost, true, fmt.Sprintf("pod %s ended, and nobody saw how%s", p.Name, brackets(state.Terminated.Reason, state.Terminated.Message))
	case state.Terminated != nil && s.code != 0:
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

// deadlineExceeded is the reason of a pod that ran longer than its user allows a pod to.
const deadlineExceeded = "DeadlineExceeded"

// trainer returns the state of the container that trains, and whether others beside it are not over.
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
			return fmt.Sprintf("pod %s waits%s", p.Name, brackets(c.Reason, c.Message)), c.Reason, !isDevice(c.Message)
		}
	}
	if p.Spec.NodeName == "" {
		return fmt.Sprintf("pod %s does not run yet", p.Name), "", true
	}
	return fmt.Sprintf("pod %s does not run yet: node %s makes its volumes and images ready; its Events tell what is in the way", p.Name, p.Spec.NodeName), waitsReady, false
}

// waitsReady is the kind of wait of a pod whose kubelet says no more than that it is at it.
const waitsReady = "Ready"

// isDevice reports whether kube-scheduler says that the GPUs of a pod cannot be had: those of a claim, or so many. For whatever else it
// refuses a node (no such volume, too few CPUs, a selector), no GPU is to blame.
func isDevice(message string) bool {
	return strings.Contains(message, "cannot allocate all claims") || strings.Contains(message, "Insufficient "+string(inventory.ResourceGPU))
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
func hasRun(s sight) bool { return s.stage == up || s.stage == succeeded || s.stage == failed }

// all reports whether all ranks are so.
func all(ranks []sight, so func(sight) bool) bool {
	return !slices.ContainsFunc(ranks, func(s sight) bool { return !so(s) })
}
