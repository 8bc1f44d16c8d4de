package jobs

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// IsGone reports whether a job is deleted or about to be.
func IsGone(tj *v1alpha1.TrainingJob) bool { return tj == nil || tj.DeletionTimestamp != nil }

// Requests reports what its user wants of a job that has arrived and is not done; tj is nil if it is gone. A job whose
// objects the API server refuses is paused as one is that its user suspends, until the server takes them.
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
	switch may := js.may(id, j, tj); {
	case (tj.Spec.Suspend || may == mustWait) && !j.Paused:
		command(sched.PauseJob)
	case !tj.Spec.Suspend && may == mayRun && j.Paused:
		command(sched.ResumeJob)
	}
	spec, err := Spec(tj, js.o.Origin, js.o.Types)
	if err != nil {
		js.o.Event(tj, "Invalid", err.Error())
		return f
	}
	if c := spec.Change(); c != j.Spec.Change() {
		if most := js.overChange(j.Spec, spec); most != nil {
			js.o.Event(tj, overLimit, most.Error())
			return f
		}
		f.Report(sched.Event{Kind: sched.JobChanged, Job: id, Change: &c})
	}
	return f
}

// leave says whether a job may be given GPUs, besides its user.
type leave uint8

const (
	asBefore leave = iota // it is to be seen
	mayRun
	mustWait
)

// may says whether a job may be given GPUs, besides its user. One that has some keeps them, whatever the API server
// would say now.
func (js *Jobs) may(id sched.JobID, j *sched.Job, tj *v1alpha1.TrainingJob) leave {
	if tj.Spec.Suspend || j.HoldsDevices() && !j.Paused {
		return asBefore
	}
	a := js.admit(tj)
	why := cmp.Or(a.Never, a.Hold)
	switch {
	case a.Unknown:
		return asBefore
	case why == "":
		return mayRun
	case j.HoldsDevices():
		return asBefore
	}
	js.hold(id, why)
	return mustWait
}
