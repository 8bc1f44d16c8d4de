package writer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/devices"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// bench is objects in an API server that checks nothing, which notes what is written.
type bench struct {
	*testing.T
	client.WithWatch

	o    *Objects
	w    *Writers
	look *observer.Queue

	mu     sync.Mutex
	writes []string
	fail   func(write string) error // nil: none fails
}

func newBench(t *testing.T, list ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, look: observer.NewQueue()}
	plain := fake.NewClientBuilder().WithScheme(scheme).WithObjects(list...).WithStatusSubresource(
		&v1alpha1.TrainingJob{})
	b.WithWatch = interceptor.NewClient(plain.Build(), interceptor.Funcs{
		Create: func(ctx context.Context, api client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return b.write("create", o, func() error { return api.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, api client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return b.write("delete", o, func() error { return b.delete(ctx, api, o, opts) })
		},
		Patch: func(ctx context.Context, api client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			return b.write("patch", o, func() error { return api.Patch(ctx, o, p, opts...) })
		},
	})
	b.w = NewWriters(nil, false, slog.New(slog.DiscardHandler))
	b.o = NewObjects(Options{
		Client: b, Reader: b, Made: observer.NewMade(),
		Look: func(k observer.Key) { b.look.Push(k) }, DeviceClass: objects.Driver,
	}, b.w)
	t.Cleanup(b.w.Close)
	return b
}

// delete deletes an object if it is the one that is meant.
func (b *bench) delete(ctx context.Context, api client.WithWatch, o client.Object, opts []client.DeleteOption) error {
	now := o.DeepCopyObject().(client.Object)
	if err := api.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
		return err
	}
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != now.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{}, now.GetName(), errors.New("the UID is another"))
	}
	return api.Delete(ctx, o, opts...)
}

func (b *bench) write(verb string, o client.Object, do func() error) error {
	b.mu.Lock()
	write, fail := fmt.Sprintf("%s %s %s", verb, kindOf(o), o.GetName()), b.fail
	b.mu.Unlock()
	if fail != nil {
		if err := fail(write); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes = append(b.writes, write)
	return nil
}

func (b *bench) setFail(f func(write string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = f
}

// wrote checks what was written since it was last called.
func (b *bench) wrote(want ...string) {
	b.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.writes, want) {
		b.Errorf("wrote %q, want %q", b.writes, want)
	}
	b.writes = nil
}

func (b *bench) isThere(o client.Object) bool {
	b.Helper()
	err := b.Get(b.Context(), client.ObjectKeyFromObject(o), o)
	if client.IgnoreNotFound(err) != nil {
		b.Fatal(err)
	}
	return err == nil
}

func podNamed(name string, uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: objects.Namespace, Name: name, UID: uid}}
}

// attempt returns the first attempt of a job on so many ranks of one GPU each.
func attempt(ranks int) (*Attempt, *v1alpha1.TrainingJob) {
	tj := objects.Job("train", int32(ranks), nil)
	tj.UID = "uid"
	v := &sched.View{Jobs: []sched.Job{{Spec: &sched.JobSpec{User: objects.Namespace, Name: "train", Task: "uid"}}}}
	var gpus []sched.GPUID
	for r := range ranks {
		v.Nodes = append(v.Nodes, sched.Node{Spec: sched.NodeSpec{Name: fmt.Sprint("n", r)}, First: sched.GPUID(r)})
		v.GPUs = append(v.GPUs, sched.GPU{Node: sched.NodeID(r)})
		gpus = append(gpus, sched.GPUID(r))
	}
	a := NewAttempt(v, v1alpha1.Pinned, 0, 1, gpus, sched.Config{})
	for r := range a.Ranks {
		a.Ranks[r].Devices = []*devices.Device{{UUID: fmt.Sprint("GPU-", r),
			ID: devices.ID{Driver: objects.Driver}}}
	}
	return a, tj
}

// Ensure that an attempt is made in order, its pods only once its devices are free, and removed with what belongs to
// it, each object by one write.
func TestStartAndRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		a, tj := attempt(2)
		b.o.Start(a, tj)
		b.wrote("create service train-1", "create claim train-1-r0", "create claim train-1-r1")
		if p := a.Progress(); p.Claimed.IsZero() || !p.Made.IsZero() || p.Free || p.Refused != nil {
			t.Errorf("progress %+v", p)
		}
		if keys := b.look.Take(); !slices.Equal(keys, []observer.Key{observer.KeyOfJob(a.Key)}) {
			t.Errorf("has %v looked at", keys)
		}
		a.MakePods()
		b.wrote("create pod train-1-0", "create pod train-1-1")
		if p := a.Progress(); p.Made.IsZero() || !p.Free {
			t.Errorf("progress %+v", p)
		}
		b.o.Remove(a, "")
		b.wrote("delete pod train-1-0", "delete pod train-1-1")
		if !a.HasMet(0) || a.HasNone(0) {
			t.Error("want the pod known to have been there")
		}
		b.o.Retire(a, false)
		b.o.Sweep(func(sched.JobID) bool { return false })
		b.wrote("delete claim train-1-r0", "delete claim train-1-r1", "delete service train-1")
		if len(b.o.unclean) != 1 {
			t.Errorf("%d are unclean, want the one that Sweep has yet to drop", len(b.o.unclean))
		}
		if b.o.Sweep(nil); len(b.o.unclean) != 0 {
			t.Errorf("%d are unclean", len(b.o.unclean))
		}
		b.wrote()
	})
}

// Ensure that what the API server refuses ends a start with the reason, and that a start that is made again finds what
// is there.
func TestStartIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		a, tj := attempt(1)
		b.setFail(func(write string) error {
			if write == "create pod train-1-0" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "train-1-0",
					errors.New("exceeded quota"))
			}
			return nil
		})
		a.MakePods()
		b.o.Start(a, tj)
		b.wrote("create claim train-1")
		want := `pod train-1-0 cannot be made: pods "train-1-0" is forbidden: exceeded quota`
		if p := a.Progress(); p.Refused == nil || p.Refused.Error() != want {
			t.Errorf("refused %v, want %s", p.Refused, want)
		}
		b.setFail(nil)
		again, _ := attempt(1)
		again.MakePods()
		b.o.Start(again, tj)
		b.wrote("create pod train-1-0")
		if p := again.Progress(); p.Refused != nil || p.Made.IsZero() {
			t.Errorf("progress %+v", p)
		}
	})
}

// Ensure that jobs that share a GPU own one claim, which goes with the last of them.
func TestSharedClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first, tj := attempt(1)
		second, other := attempt(1)
		other.Name, other.UID, second.UID, second.Key.Name, second.base = "other", "other", "other", "other", "other-1"
		for _, a := range []*Attempt{first, second} {
			a.Config.Share = sched.Shared
		}
		name := slotName("GPU-0")
		b.o.Start(first, tj)
		b.wrote("create claim " + name)
		b.o.Start(second, other)
		b.wrote("patch claim " + name)
		there := &resourcev1.ResourceClaim{ObjectMeta: observer.MetaOf(first.Within(name))}
		if !b.isThere(there) || len(there.OwnerReferences) != 2 {
			t.Fatalf("owners %v, want two", there.OwnerReferences)
		}
		gone := func(sched.JobID) bool { return false }
		b.o.Retire(first, false)
		b.o.Sweep(gone)
		b.wrote("patch claim " + name)
		b.o.Retire(second, false)
		b.o.Sweep(gone)
		b.wrote("delete claim " + name)
	})
}

// Ensure that nothing is written by those that are idle.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.o.writers = NewWriters(nil, true, slog.New(slog.DiscardHandler))
		a, tj := attempt(1)
		b.o.Start(a, tj)
		b.o.Remove(a, "ending")
		b.o.Retire(a, true)
		b.o.Sweep(func(sched.JobID) bool { return false })
		if b.wrote(); len(b.o.unclean) != 0 {
			t.Error("want nothing kept")
		}
	})
}

// Ensure that what is to be deleted counts as gone where another has its name by now, which stays; and that a conflict
// of another kind is tried again.
func TestDeletedByUID(t *testing.T) {
	b := newBench(t, podNamed("train-1-0", "now"))
	now, old := podNamed("train-1-0", "now"), podNamed("train-1-0", "before")
	if err := b.o.deleteThis(t.Context(), old); err != nil || !b.isThere(now) {
		t.Errorf("of a pod that another took the name of: %v; the other is there: %t", err, b.isThere(now))
	}
	b.setFail(func(string) error {
		return apierrors.NewConflict(schema.GroupResource{}, now.Name, errors.New("changed"))
	})
	if err := b.o.deleteThis(t.Context(), now); !apierrors.IsConflict(err) || !Transient(err) {
		t.Errorf("of a pod that changes: %v", err)
	}
	b.setFail(nil)
	if err := b.o.deleteThis(t.Context(), now); err != nil || b.isThere(podNamed("train-1-0", "now")) {
		t.Errorf("then: %v; it is there: %t", err, b.isThere(podNamed("train-1-0", "now")))
	}
}

// Ensure that finalizers are set and taken away by one write each, and by none where there is nothing to do.
func TestSetFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tj := objects.Job("train", 1, nil)
		tj.UID = "uid"
		b := newBench(t, tj)
		if !b.isThere(tj) {
			t.Fatal("no job")
		}
		b.o.SetFinalizer(tj, true)
		b.wrote()
		b.o.SetFinalizer(tj, false)
		b.wrote("patch object train")
		b.o.SetFinalizer(tj, false) // the cache is late
		b.wrote()
	})
}
