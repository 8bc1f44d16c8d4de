package driver

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/attempts"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// blind returns a client whose cache has not yet heard of objects.
func blind(c client.WithWatch, hidden func(o client.Object) bool) client.WithWatch {
	return interceptor.NewClient(c,
		interceptor.Funcs{Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			if hidden(o) {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			return api.Get(ctx, key, o, opts...)
		}})
}

func isJob(o client.Object) bool  { _, is := o.(*v1alpha1.TrainingJob); return is }
func isPod(o client.Object) bool  { _, is := o.(*corev1.Pod); return is }
func isNode(o client.Object) bool { _, is := o.(*corev1.Node); return is }

// Ensure that one who takes the lead with a cache that is late does not take what is not in it for gone, and that what
// is gone is.
func TestCacheThatIsLate(t *testing.T) {
	takeover := func(hidden func(client.Object) bool, meanwhile, then func(*world)) func(*world) {
		return func(w *world) {
			w.run()
			w.d.Close()
			meanwhile(w)
			o := options(w.cluster)
			o.Client = blind(w.cluster.WithWatch, hidden)
			n := len(w.events)
			w.take(o)
			w.settle()
			for range 3 { // and every time that anything happens
				w.queue.Push(observer.KeysOf(objects.Job("train", 6, nil))...)
				w.queue.Push(observer.KeyOfNode("a"))
				w.settle()
			}
			w.events = w.events[n:]
			then(w)
		}
	}
	nothing := func(*world) {}
	goesOn := func(w *world) {
		w.attempt(0, sched.Running)
		for _, k := range []sched.EventKind{sched.JobCommanded, sched.AttemptEnded, sched.NodeLeft, sched.GPUChanged} {
			if len(w.of(k)) > 0 {
				w.Errorf("reported %v", kinds0(w.events))
			}
		}
		if w.podOf("train-1-0") == nil || w.podOf("train-1-1") == nil {
			w.Error("a pod is gone")
		}
	}
	play(t, []scene{
		{name: "a job", width: 6, test: takeover(isJob, nothing, goesOn)},
		{name: "its pods", width: 6, test: takeover(isPod, nothing, goesOn)},
		{name: "its nodes", width: 6, test: takeover(isNode, nothing, goesOn)},
		{name: "a job that is gone", width: 6, test: takeover(isJob, func(w *world) {
			change(w.cluster, objects.Job("train", 6, nil), func(tj *v1alpha1.TrainingJob) {
				controllerutil.RemoveFinalizer(tj, v1alpha1.Finalizer)
			})
			must(w, w.Delete(w.Context(), objects.Job("train", 6, nil)))
		}, func(w *world) {
			if e := w.last(sched.JobCommanded); e.Code != int32(sched.CancelJob) {
				w.Errorf("reported %+v, want a command to cancel", e)
			}
		})},
		{name: "a pod of others", width: 6, test: takeover(isPod, func(w *world) {
			must(w, w.Delete(w.Context(), w.podOf("train-1-1"), client.GracePeriodSeconds(0)))
			must(w, w.Create(w.Context(),
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "train-1-1"},
					Spec: corev1.PodSpec{SchedulerName: "another"}}))
		}, func(w *world) { w.ended(sched.NodeLost, "someone else deleted pod train-1-1") })},
		{name: "a job that is to start", width: 1, test: func(w *world) {
			w.d.Close()
			o := options(w.cluster)
			o.Client = blind(w.cluster.WithWatch, isJob)
			w.take(o)
			w.run()
		}},
	})
}

// Ensure that a start has its time even where the API server makes no claim, and that its GPUs are not blamed.
func TestClaimThatIsNeverMade(t *testing.T) {
	play(t, []scene{{name: "", width: 2, test: func(w *world) {
		w.setFail(func(verb string, o client.Object) error {
			if _, claim := o.(*resourcev1.ResourceClaim); claim && verb == "create" {
				return apierrors.NewInternalError(errors.New("a webhook does not answer"))
			}
			return nil
		})
		w.start(0, 0, 1)
		w.pass(9 * time.Minute)
		w.attempt(0, sched.Starting)
		w.pass(2 * time.Minute)
		if e := w.last(sched.StartFailed); e.Text != "its claims, or its service, could not be made within 10m0s" ||
			len(e.GPUs) > 0 {
			w.Errorf("text %q, suspects GPUs %v", e.Text, e.GPUs)
		}
	}}})
}

// Ensure that where the API server makes no pod no GPU is blamed, and that the time counts from when the devices are
// free.
func TestPodThatIsNeverMade(t *testing.T) {
	play(t, []scene{{name: "", width: 2, test: func(w *world) {
		w.setFail(func(verb string, o client.Object) error {
			if isPod(o) && verb == "create" && o.GetName() == "train-1-0" {
				return apierrors.NewInternalError(errors.New("a webhook does not answer"))
			}
			return nil
		})
		startHeld(w)
		w.pass(9 * time.Minute)
		w.stuck = false
		w.pass(9 * time.Minute)
		w.attempt(0, sched.Starting)
		w.pass(2 * time.Minute)
		if e := w.last(sched.StartFailed); e.Text != "its pods could not be made within 10m0s" || len(e.GPUs) > 0 {
			w.Errorf("text %q, suspects GPUs %v", e.Text, e.GPUs)
		}
	}}})
}

// Ensure that an attempt whose pods the API server will not have deleted for a while ends all the same, and that of its
// ranks the others do not wait.
func TestDeletionThatIsRefused(t *testing.T) {
	play(t, []scene{{name: "", width: 6, test: func(w *world) {
		w.run()
		w.setFail(func(verb string, o client.Object) error {
			if isPod(o) && verb == "delete" && o.GetName() == "train-1-0" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, o.GetName(),
					errors.New("it is protected"))
			}
			return nil
		})
		w.stop(0)
		w.pass(time.Minute)
		w.attempt(0, sched.Stopping)
		if w.podOf("train-1-0") == nil || w.podOf("train-1-1") != nil {
			w.Error("want the first pod there, and the second gone")
		}
		w.setFail(nil)
		w.pass(time.Minute)
		w.ended(sched.Preempted, "stopped as ordered")
	}}, {name: "of a node that is gone", width: 1, test: func(w *world) {
		w.run()
		w.setFail(func(verb string, o client.Object) error {
			if isPod(o) && verb == "delete" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, o.GetName(),
					errors.New("it is protected"))
			}
			return nil
		})
		w.silent["a"] = true
		must(w, w.Delete(w.Context(), nodeNamed("a")))
		w.pass(time.Minute)
		w.attempt(0, sched.Running)
		w.setFail(nil)
		w.pass(time.Minute)
		w.ended(sched.NodeLost, "node a is gone")
	}}})
}

// Ensure that a claim that the API server will not have deleted for a while is deleted all the same, whether or not the
// job goes on meanwhile: no other job would get its devices.
func TestClaimThatStays(t *testing.T) {
	protected := func(w *world) {
		w.setFail(func(verb string, o client.Object) error {
			if _, claim := o.(*resourcev1.ResourceClaim); claim && verb == "delete" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "resourceclaims"}, o.GetName(),
					errors.New("it is protected"))
			}
			return nil
		})
	}
	play(t, []scene{{name: "of a job that waits", width: 1, test: func(w *world) {
		w.run()
		protected(w)
		w.stop(0)
		w.pass(time.Minute)
		w.ended(sched.Preempted, "stopped as ordered")
		if w.claimNamed("train-1") == nil {
			w.Fatal("want the claim there")
		}
		w.setFail(nil)
		w.pass(time.Minute)
		if w.claimNamed("train-1") != nil {
			w.Error("the claim is never deleted")
		}
	}}, {name: "of a job that runs elsewhere", width: 1, test: func(w *world) {
		w.run()
		protected(w)
		w.stop(0)
		w.pass(time.Minute)
		w.start(0, 3)
		w.pass(time.Minute)
		w.attempt(0, sched.Running)
		w.setFail(nil)
		w.pass(time.Minute)
		if w.claimNamed("train-1") != nil || w.claimNamed("train-2") == nil {
			w.Error("want the first claim deleted, and the second there")
		}
	}}})
}

// Ensure that an attempt that is stopped before its pods were looked at ends all the same: before anybody looked, they
// are made and gone, or the cache hears of them late, or has what an earlier job left.
func TestStoppedUnseen(t *testing.T) {
	late := func(has func(o client.Object) error) func(*world) {
		return func(w *world) {
			w.d.Close()
			stale := true
			o := options(w.cluster)
			o.Client = interceptor.NewClient(w.WithWatch,
				interceptor.Funcs{Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey,
					o client.Object, opts ...client.GetOption) error {
					if stale && isPod(o) {
						return has(o)
					}
					return api.Get(ctx, key, o, opts...)
				}})
			w.take(o)
			w.start(0, 0)
			w.settle()
			if w.podOf("train-1-0") == nil {
				w.Fatal("want a pod")
			}
			w.stop(0)
			w.settle()
			if len(w.of(sched.AttemptEnded)) > 0 && w.podOf("train-1-0") != nil {
				w.Error("reported to have ended, and its pod is there")
			}
			stale = false
			w.pass(time.Minute)
			w.ended(sched.Preempted, "stopped as ordered")
		}
	}
	play(t, []scene{
		{name: "the cache is late", width: 1,
			test: late(func(client.Object) error {
				return apierrors.NewNotFound(schema.GroupResource{}, "train-1-0")
			})},
		{name: "the cache has a pod of an earlier job", width: 1, test: late(func(o client.Object) error {
			o.SetOwnerReferences(
				[]metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TrainingJob", Name: "train",
					UID: "earlier"}})
			return nil
		})},
		{name: "made and gone between two looks", width: 1, test: func(w *world) {
			w.start(0, 0)
			synctest.Wait() // the claims
			_, err := w.d.Next(w.Context(), w.d.clock.read().Add(time.Nanosecond))
			must(w, err)
			synctest.Wait() // the pod
			if w.podOf("train-1-0") == nil || hasSeen(w.d.attempts, 0, 0) {
				w.Fatal("want a pod that no look has shown")
			}
			w.stop(0)
			synctest.Wait()
			if w.podOf("train-1-0") != nil {
				w.Fatal("want the pod gone")
			}
			w.settle()
			w.ended(sched.Preempted, "stopped as ordered")
		}},
	})
}

// Ensure that what an earlier job of the same name left, and is about to go, is waited for.
func TestObjectsOfAnEarlierJob(t *testing.T) {
	earlier := []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TrainingJob", Name: "train",
		UID: "earlier"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "train-1-0", OwnerReferences: earlier},
		Spec: corev1.PodSpec{SchedulerName: "another"}}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "train-1",
		Finalizers: []string{"test/held"}}}
	play(t, []scene{
		{name: "a pod that is not collected yet", width: 1, test: func(w *world) {
			must(w, w.Create(w.Context(), pod.DeepCopy()))
			w.start(0, 0)
			w.settle()
			w.attempt(0, sched.Starting)
			must(w, w.Delete(w.Context(), w.podOf("train-1-0")))
			w.pass(10 * time.Second)
			w.attempt(0, sched.Running)
		}},
		{name: "a claim that is held", width: 1, test: func(w *world) {
			must(w, w.Create(w.Context(), claim.DeepCopy()))
			must(w, w.Delete(w.Context(), claim.DeepCopy()))
			w.start(0, 0)
			w.settle()
			w.attempt(0, sched.Starting)
			change(w.cluster, claim.DeepCopy(), func(c *resourcev1.ResourceClaim) { c.Finalizers = nil })
			w.pass(10 * time.Second)
			w.attempt(0, sched.Running)
		}},
	})
}

// Ensure that a job that arrived in a mode with claims cannot go before its pods in one without.
func TestModeWithoutClaimsKeepsJobs(t *testing.T) {
	play(t, []scene{{name: "", width: 1, test: func(w *world) {
		change(w.cluster, objects.Job("train", 1, nil), func(tj *v1alpha1.TrainingJob) {
			controllerutil.RemoveFinalizer(tj, v1alpha1.Finalizer)
		})
		w.run()
		w.d.Close()
		o := options(w.cluster)
		o.Mode = v1alpha1.Count
		w.take(o)
		w.settle()
		tj := new(v1alpha1.TrainingJob)
		must(w, w.Get(w.Context(), client.ObjectKeyFromObject(objects.Job("train", 1, nil)), tj))
		if !controllerutil.ContainsFinalizer(tj, v1alpha1.Finalizer) {
			w.Error("want the finalizer")
		}
	}}})
}

// hasSeen reports whether the cache has shown the pod of a rank of the attempt of a job, which only the part itself may
// read.
func hasSeen(part *attempts.Attempts, job sched.JobID, rank int) bool {
	a := reflect.ValueOf(part).Elem().FieldByName("alive").MapIndex(reflect.ValueOf(job)).Elem()
	return a.FieldByName("ranks").Index(rank).FieldByName("seen").Bool()
}
