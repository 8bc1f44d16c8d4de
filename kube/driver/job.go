package driver

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// lookAtJob tells what is new about a job: that it is there, what its user wants, what became of its attempt.
func (d *Driver) lookAtJob(key types.NamespacedName) error {
	tj := new(v1alpha1.TrainingJob)
	found, err := d.get(key, tj)
	if err != nil {
		return err
	}
	id, known := d.ids[key]
	if known && d.isMissing(id, tj, found) {
		tj = new(v1alpha1.TrainingJob)
		if found, err = d.ask(key, tj); err != nil {
			return err
		}
	}
	if !found {
		delete(d.turnedAway, key)
	}
	if known {
		d.forget(id)
	}
	switch {
	case !found:
		tj = nil
	case known && d.view.Jobs[id].Spec.Task != string(tj.UID):
		if d.view.Jobs[id].State != sched.Done { // another of its name: the first goes before, although its object went already
			tj = nil
			break
		}
		known = false
	}
	if !known {
		if tj != nil {
			d.meet(tj)
		}
		return nil
	}
	j := &d.view.Jobs[id]
	if j.State != sched.Done && tj != nil && tj.DeletionTimestamp == nil && !observer.UsesClaims(d.o.Mode) { // it may have arrived in a mode with claims
		d.setFinalizer(tj, true)
	}
	d.heed(id, j, tj)
	if a := d.attempts[id]; a != nil {
		return d.observe(a)
	}
	if j.State == sched.Done && tj != nil && tj.DeletionTimestamp != nil {
		d.setFinalizer(tj, false)
	}
	return nil
}

// forget drops what was to be known of the next attempt of a job that has none.
func (d *Driver) forget(id sched.JobID) {
	if d.view.Jobs[id].State == sched.Done && d.attempts[id] == nil {
		delete(d.odometers, id)
		delete(d.lost, id)
	}
}

// isMissing reports whether a job that is to go on is not what the cache has by its name, if it has anything.
func (d *Driver) isMissing(id sched.JobID, tj *v1alpha1.TrainingJob, found bool) bool {
	j := &d.view.Jobs[id]
	return j.State != sched.Done && !j.Cancel && (!found || string(tj.UID) != j.Spec.Task)
}

// meet lets a job arrive that is not known. Where no claims tell which devices its pods have, it gets our finalizer first, so that it
// cannot go before them: a leader that comes later knows of them by its record alone.
func (d *Driver) meet(tj *v1alpha1.TrainingJob) {
	switch {
	case tj.DeletionTimestamp != nil:
		d.setFinalizer(tj, false)
	case hasEnded(tj) || d.turnedAway[client.ObjectKeyFromObject(tj)] == tj.UID: // its record was forgotten, or there never was one
	case !observer.UsesClaims(d.o.Mode) && !controllerutil.ContainsFinalizer(tj, v1alpha1.Finalizer) && !d.o.Observe:
		d.setFinalizer(tj, true)
	default:
		d.arrivals = append(d.arrivals, tj)
	}
}

// hasEnded reports whether the status says that this job is over. One with the record of another, that was of this name before, says nothing.
func hasEnded(tj *v1alpha1.TrainingJob) bool {
	if tj.Status.Phase != v1alpha1.Succeeded && tj.Status.Phase != v1alpha1.Failed {
		return false
	}
	rec, err := record.Read(tj.Status.Record)
	return err != nil || rec.Job.Spec.Task == string(tj.UID)
}

// setFinalizer keeps a job from going, or lets it go.
func (d *Driver) setFinalizer(tj *v1alpha1.TrainingJob, on bool) {
	if controllerutil.ContainsFinalizer(tj, v1alpha1.Finalizer) == on {
		return
	}
	key := client.ObjectKeyFromObject(tj)
	d.submit("finalizer/"+key.String(), func(ctx context.Context) {
		now := tj // as the cache has it: where that is late, the API server says so
		err := d.crew.write(ctx, func(ctx context.Context) error {
			if now.UID != tj.UID || controllerutil.ContainsFinalizer(now, v1alpha1.Finalizer) == on || on && now.DeletionTimestamp != nil {
				return nil
			}
			then := now.DeepCopy()
			if on {
				controllerutil.AddFinalizer(then, v1alpha1.Finalizer)
			} else {
				controllerutil.RemoveFinalizer(then, v1alpha1.Finalizer)
			}
			err := d.o.Client.Patch(ctx, then, locked(now))
			if apierrors.IsConflict(err) {
				now = new(v1alpha1.TrainingJob)
				if gone := d.o.Reader.Get(ctx, key, now); gone != nil {
					return client.IgnoreNotFound(gone)
				}
			}
			return client.IgnoreNotFound(err)
		})
		d.warn(ctx, err, "the finalizer of a job cannot be set", "job", key, "on", on)
	})
}

// heed tells what its user wants of a job that has arrived; tj is nil if it is gone.
func (d *Driver) heed(id sched.JobID, j *sched.Job, tj *v1alpha1.TrainingJob) {
	if j.State == sched.Done {
		return
	}
	command := func(c sched.Command) {
		d.tell(sched.Event{Kind: sched.JobCommanded, Job: id, Code: int32(c)})
		d.again(observer.KeyOfJob(types.NamespacedName{Namespace: j.Spec.User, Name: j.Spec.Name}))
	}
	if tj == nil || tj.DeletionTimestamp != nil {
		if a := d.attempts[id]; a != nil {
			a.orphan = true
		}
		if !j.Cancel {
			command(sched.CancelJob)
		}
		return
	}
	switch {
	case tj.Spec.Suspend && !j.Paused:
		command(sched.PauseJob)
	case !tj.Spec.Suspend && j.Paused:
		command(sched.ResumeJob)
	}
	spec, err := Spec(tj, d.o.Origin, d.o.Types)
	if err != nil {
		d.o.Event(tj, "Invalid", err.Error())
		return
	}
	if c := spec.Change(); c != j.Spec.Change() {
		d.tell(sched.Event{Kind: sched.JobChanged, Job: id, Change: &c})
	}
}

// unknownType is the reason of events about types of GPUs that the cluster does not have.
const unknownType = "UnknownType"

// turnAway tells the user of a job that does not arrive what is in its way. One of which a GPU of its type may join later waits: whoever
// leads begins anew with that type, and lets it arrive then.
func (d *Driver) turnAway(tj *v1alpha1.TrainingJob, why error) {
	key := client.ObjectKeyFromObject(tj)
	d.turnedAway[key] = tj.UID
	waits := errors.Is(why, errNoType)
	if waits && tj.Status.Reason == why.Error() { // told before
		return
	}
	event := "Invalid"
	if waits {
		event = unknownType
	}
	d.o.Event(tj, event, why.Error())
	d.submit("turned away/"+key.String(), func(ctx context.Context) {
		err := d.crew.write(ctx, func(ctx context.Context) error {
			now := new(v1alpha1.TrainingJob)
			if err := d.o.Reader.Get(ctx, key, now); err != nil {
				return client.IgnoreNotFound(err)
			}
			if now.UID != tj.UID {
				return nil
			}
			was := now.DeepCopy()
			now.Status.Phase, now.Status.Reason = v1alpha1.Pending, why.Error()
			if !waits {
				now.Status.Phase = v1alpha1.Failed
				meta.SetStatusCondition(&now.Status.Conditions, metav1.Condition{Type: "Failed", Status: metav1.ConditionTrue, Reason: event, Message: why.Error()})
			}
			return client.IgnoreNotFound(d.o.Client.Status().Patch(ctx, now, locked(was)))
		})
		d.warn(ctx, err, "a job cannot be told what is in its way", "job", key)
	})
}
