package writer

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
)

// AnnotationPace is what is known of how the progress of a job is counted and how fast it was, on its TrainingJob. It
// is no part of its record: without it a job is measured again.
const AnnotationPace = "trainyard.dev/pace"

// endingTime is how long the pods of an attempt wait at most for how it ends to be written down.
const endingTime = 10 * time.Second

// noteEnding writes down how an attempt ends, if that can be done in time: its GPUs are not to be held by ranks that
// wait for one that failed.
func (o *Objects) noteEnding(ctx context.Context, a *Attempt, ending string) {
	soon, cancel := context.WithTimeout(ctx, endingTime)
	err := o.annotate(soon, a, v1alpha1.AnnotationDeletion, ending)
	cancel()
	o.writers.Warn(ctx, err, "how an attempt ends cannot be kept", "job", a.Key, "attempt", a.Number)
}

// KeepPace writes down how fast the job of an attempt is, for later.
func (o *Objects) KeepPace(a *Attempt, pace string) {
	o.writers.Do("pace/"+a.Key.String(), func(ctx context.Context) {
		err := o.annotate(ctx, a, AnnotationPace, pace)
		o.writers.Warn(ctx, err, "the speed of a job cannot be kept", "job", a.Key)
	})
}

// annotate annotates the TrainingJob of an attempt, and no other that has its name by now.
func (o *Objects) annotate(ctx context.Context, a *Attempt, name, text string) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": a.UID, "annotations": map[string]string{name: text}},
	})
	if err != nil {
		return err
	}
	return o.writers.Write(ctx, func(ctx context.Context) error {
		tj := &v1alpha1.TrainingJob{ObjectMeta: observer.MetaOf(a.Key)}
		err := o.o.Client.Patch(ctx, tj, client.RawPatch(types.MergePatchType, body))
		if apierrors.IsConflict(err) && o.o.Reader.Get(ctx, a.Key, tj) == nil && tj.UID != a.UID {
			return nil
		}
		return client.IgnoreNotFound(err)
	})
}

// SetFinalizer keeps a job from going, or lets it go.
func (o *Objects) SetFinalizer(tj *v1alpha1.TrainingJob, on bool) {
	if controllerutil.ContainsFinalizer(tj, v1alpha1.Finalizer) == on {
		return
	}
	key := client.ObjectKeyFromObject(tj)
	o.writers.Do("finalizer/"+key.String(), func(ctx context.Context) {
		now := tj // as the cache has it: where that is late, the API server says so
		err := o.writers.Write(ctx, func(ctx context.Context) error {
			if now.UID != tj.UID || controllerutil.ContainsFinalizer(now, v1alpha1.Finalizer) == on ||
				on && now.DeletionTimestamp != nil {
				return nil
			}
			err := o.o.Client.Patch(ctx, WithFinalizer(now, on), Locked(now))
			if apierrors.IsConflict(err) {
				now = new(v1alpha1.TrainingJob)
				if gone := o.o.Reader.Get(ctx, key, now); gone != nil {
					return client.IgnoreNotFound(gone)
				}
			}
			return client.IgnoreNotFound(err)
		})
		o.writers.Warn(ctx, err, "the finalizer of a job cannot be set", "job", key, "on", on)
	})
}

// WithFinalizer returns an object with our finalizer, or without it.
func WithFinalizer(o client.Object, on bool) client.Object {
	then := o.DeepCopyObject().(client.Object)
	if on {
		controllerutil.AddFinalizer(then, v1alpha1.Finalizer)
	} else {
		controllerutil.RemoveFinalizer(then, v1alpha1.Finalizer)
	}
	return then
}

// TurnAway writes into the status of a job that does not arrive what is in its way. One that waits is pending, any
// other has failed, which is a condition of this reason.
func (o *Objects) TurnAway(tj *v1alpha1.TrainingJob, why string, waits bool, reason string) {
	key := client.ObjectKeyFromObject(tj)
	o.writers.Do("turned away/"+key.String(), func(ctx context.Context) {
		err := o.writers.Write(ctx, func(ctx context.Context) error {
			now := new(v1alpha1.TrainingJob)
			if err := o.o.Reader.Get(ctx, key, now); err != nil {
				return client.IgnoreNotFound(err)
			}
			if now.UID != tj.UID {
				return nil
			}
			was := now.DeepCopy()
			now.Status.Phase, now.Status.Reason = v1alpha1.Pending, why
			if !waits {
				now.Status.Phase = v1alpha1.Failed
				failed := metav1.Condition{Type: "Failed", Status: metav1.ConditionTrue, Reason: reason, Message: why}
				meta.SetStatusCondition(&now.Status.Conditions, failed)
			}
			return client.IgnoreNotFound(o.o.Client.Status().Patch(ctx, now, Locked(was)))
		})
		o.writers.Warn(ctx, err, "what is in the way of a job cannot be written", "job", key)
	})
}
