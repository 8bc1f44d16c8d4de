package jobs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/sched"
)

// errOverLimit says that a job asks for more than the policy lets it have.
var errOverLimit = errors.New("the SchedulerPolicy allows less")

func over(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errOverLimit, fmt.Sprintf(format, args...))
}

// overLimit returns what a job asks for beyond the limits of the policy, nil if it keeps them. Limits of 0 bound
// nothing, but for that of the priority.
func (js *Jobs) overLimit(tj *v1alpha1.TrainingJob) error {
	l := js.o.Limits
	if l == nil {
		return nil
	}
	pod := &tj.Spec.Template.Spec
	switch {
	case tj.Spec.Priority > l.Priority:
		return over("priority %d, want at most limits.priority, %d", tj.Spec.Priority, l.Priority)
	case pod.PriorityClassName != "" && !slices.Contains(l.PriorityClasses, pod.PriorityClassName):
		return over("template.spec.priorityClassName %q, want one of limits.priorityClasses%s", pod.PriorityClassName,
			listed(l.PriorityClasses))
	case pod.SchedulerName != "" && pod.SchedulerName != corev1.DefaultSchedulerName &&
		!slices.Contains(l.Schedulers, pod.SchedulerName):
		return over("template.spec.schedulerName %q, want %s or one of limits.schedulers%s", pod.SchedulerName,
			corev1.DefaultSchedulerName, listed(l.Schedulers))
	}
	if most := int(l.JobBytes); most > 0 {
		if n := sizeOf(tj, most); n > most {
			return over("it has %d bytes, want at most limits.jobBytes, %d: "+
				"put what is long into a ConfigMap or an image", n, most)
		}
	}
	return js.overGrace(tj)
}

// overGrace returns an error about a grace that is longer than the policy allows.
func (js *Jobs) overGrace(tj *v1alpha1.TrainingJob) error {
	if js.o.Limits == nil {
		return nil
	}
	grace, longest := time.Duration(tj.Spec.Checkpoint.GraceSeconds)*time.Second, js.o.Limits.Grace.Duration
	if longest > 0 && grace > longest {
		return over("checkpoint.graceSeconds %d, want at most limits.grace, %v", int(grace.Seconds()), longest)
	}
	return nil
}

// Bounded returns the job that an attempt is made of: one whose grace became longer than the policy allows, which may
// be changed at any time, has as much as that. An Event reports it.
func (js *Jobs) Bounded(tj *v1alpha1.TrainingJob) *v1alpha1.TrainingJob {
	most := js.overGrace(tj)
	if most == nil {
		return tj
	}
	js.o.Event(tj, overLimit, most.Error()+"; this attempt has that much")
	tj = tj.DeepCopy()
	tj.Spec.Checkpoint.GraceSeconds = max(int64(js.o.Limits.Grace.Seconds()), 1)
	return tj
}

// overChange returns what of a change of a job that has arrived goes beyond the limits of the policy. What it had
// before it may keep.
func (js *Jobs) overChange(was, now *sched.JobSpec) error {
	if l := js.o.Limits; l != nil && now.Priority > max(l.Priority, was.Priority) {
		return over("priority %d, want at most limits.priority, %d", now.Priority, l.Priority)
	}
	return nil
}

// listed names what a list of the policy has.
func listed(list []string) string {
	if len(list) == 0 {
		return ", which has none"
	}
	return ": " + strings.Join(list, ", ")
}

// overCount returns an error about a job that is about to arrive in a namespace that has as many jobs as the policy
// allows. arriving counts those of the look under way.
func (js *Jobs) overCount(v *sched.View, space string, arriving map[string]int) error {
	if js.o.Limits == nil || js.o.Limits.JobsPerNamespace == 0 {
		return nil
	}
	most := int(js.o.Limits.JobsPerNamespace)
	if n := js.notDone(v)[space] + arriving[space]; n >= most {
		return over("%d jobs of namespace %s are not done, want at most limits.jobsPerNamespace, %d", n, space, most)
	}
	return nil
}

// notDone counts the jobs of each namespace that have arrived and are not done. It counts once a look.
func (js *Jobs) notDone(v *sched.View) map[string]int {
	if js.crowd != nil {
		return js.crowd
	}
	js.crowd = make(map[string]int)
	for key, id := range js.ids {
		if v.Jobs[id].State != sched.Done {
			js.crowd[key.Namespace]++
		}
	}
	return js.crowd
}
