package jobs

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// IsGone reports whether a job is deleted or about to be.
func IsGone(tj *v1alpha1.TrainingJob) bool { return tj == nil || tj.DeletionTimestamp != nil }

// Requests reports what its user wants of a job that has arrived and is not done; tj is nil if it is gone.
func (js *Jobs) Requests(id sched.JobID, j *sched.Job, tj *v1alpha1.TrainingJob) (f observer.Found) {
	command := func(c sched.Command) {
		f.Report(sched.Event{Kind: sched.JobCommanded, Job: id, Code: int32(c)})
		f.LookAgain(observer.KeyOfJob(types.NamespacedName{Namespace: j.Spec.User, Name: j.Spec.Name}))
	}
	if IsGone(tj) {
		if !j.Cancel {
			command(sched.CancelJob)
		}
		return f
	}
	switch {
	case tj.Spec.Suspend && !j.Paused:
		command(sched.PauseJob)
	case !tj.Spec.Suspend && j.Paused:
		command(sched.ResumeJob)
	}
	spec, err := Spec(tj, js.o.Origin, js.o.Types)
	if err != nil {
		js.o.Event(tj, "Invalid", err.Error())
		return f
	}
	if c := spec.Change(); c != j.Spec.Change() {
		f.Report(sched.Event{Kind: sched.JobChanged, Job: id, Change: &c})
	}
	return f
}
