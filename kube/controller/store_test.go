package controller

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// desk is a store of leader 1, with one job of UID "first" named lab/a, and the API that it writes to.
type desk struct {
	*store

	t   testing.TB
	api client.WithWatch
}

// newDesk prepares a desk whose requests go through funcs. The API has a policy, and no job yet.
func newDesk(t testing.TB, funcs interceptor.Funcs) *desk {
	t.Helper()
	policy := &v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: PolicyName},
		Status: v1alpha1.SchedulerPolicyStatus{Leader: 1}}
	api := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(policy).WithStatusSubresource(
		&v1alpha1.TrainingJob{}, policy).Build()
	d := &desk{t: t, api: api}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
		t.Fatal(err)
	}
	d.store = &store{schema: record.JobSchema, fencedWriter: fencedWriter{ctx: t.Context(),
		api: interceptor.NewClient(api, funcs), reader: api,
		log: slog.New(slog.DiscardHandler), space: "trainyard", policy: policy, leader: 1, held: func() error {
			return nil
		},
		blobs: make(map[string]blob)}, clock: time.Now, maxBlob: maxBlob, jobs: map[sched.JobID]*saved{0: {}},
		v: &sched.View{Jobs: []sched.Job{{Spec: &sched.JobSpec{User: "lab", Name: "a", Task: "first"}}}}}
	return d
}

// submit makes the job lab/a, as the API server does: with the UID of this one.
func (d *desk) submit(uid types.UID) {
	d.t.Helper()
	if err := d.api.Create(d.t.Context(),
		&v1alpha1.TrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "a", UID: uid}}); err != nil {
		d.t.Fatal(err)
	}
}

// job returns lab/a.
func (d *desk) job() *v1alpha1.TrainingJob {
	d.t.Helper()
	var j v1alpha1.TrainingJob
	if err := d.api.Get(d.t.Context(), types.NamespacedName{Namespace: "lab", Name: "a"}, &j); err != nil {
		d.t.Fatal(err)
	}
	return &j
}

// write writes a phase of the job.
func (d *desk) write(phase v1alpha1.Phase) error {
	d.jobs[0].next = v1alpha1.TrainingJobStatus{Phase: phase}
	return d.writeJob(0)
}

// usurp has leader 2 take over.
func (d *desk) usurp() {
	d.t.Helper()
	var p v1alpha1.SchedulerPolicy
	if err := d.api.Get(d.t.Context(), types.NamespacedName{Name: PolicyName}, &p); err != nil {
		d.t.Fatal(err)
	}
	p.Status.Leader = 2
	if err := d.api.Status().Update(d.t.Context(), &p); err != nil {
		d.t.Fatal(err)
	}
}

// Ensure that of a job that was deleted nothing is written to another that was made under its name, whether or not it
// was written before.
func TestStatusOfAnother(t *testing.T) {
	for _, before := range []bool{false, true} {
		d := newDesk(t, interceptor.Funcs{})
		d.submit("first")
		if before {
			if err := d.write(v1alpha1.Running); err != nil || d.job().Status.Phase != v1alpha1.Running {
				t.Fatal(err, d.job().Status)
			}
		}
		if err := d.api.Delete(t.Context(), d.job()); err != nil {
			t.Fatal(err)
		}
		if err := d.write(v1alpha1.Stopping); err != nil { // there is none
			t.Fatal(err)
		}
		d.submit("second")
		for range 3 {
			if err := d.write(v1alpha1.Failed); err != nil || d.job().Status.Phase != "" {
				t.Errorf("written before %v: %v, the second job has the status %+v", before, err, d.job().Status)
			}
		}
	}
}

// Ensure that where the cache is behind a conflict is solved by one look at the API, and that a job is not taken to be
// gone because the cache has not heard of it.
func TestLateCache(t *testing.T) {
	for name, late := range map[string]func(*v1alpha1.TrainingJob) error{
		"old": func(j *v1alpha1.TrainingJob) error { j.ResourceVersion = "1"; return nil },
		"none": func(j *v1alpha1.TrainingJob) error {
			return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("trainingjobs").GroupResource(), j.Name)
		},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			d := newDesk(t, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
					opts ...client.GetOption) error {
					if err := c.Get(ctx, key, o, opts...); err != nil {
						return err
					}
					return late(o.(*v1alpha1.TrainingJob))
				},
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object,
					p client.Patch, opts ...client.SubResourcePatchOption) error {
					if tries++; tries > 9 {
						return errDied
					}
					return c.SubResource(sub).Patch(ctx, o, p, opts...)
				}})
			d.fatal = func(err error) bool { return errors.Is(err, errDied) }
			d.submit("first")
			for range 2 { // its user changes it
				j := d.job()
				j.Spec.Suspend = !j.Spec.Suspend
				if err := d.api.Update(t.Context(), j); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.write(v1alpha1.Running); err != nil || tries > 2 || d.job().Status.Phase != v1alpha1.Running {
				t.Errorf("%v after %d tries, phase %q", err, tries, d.job().Status.Phase)
			}
		})
	}
}

// Ensure that a job that its user has changed since it was written takes one write where the cache has the change, and
// two where the cache is behind; and that another leader's write that the cache has ends this one before it writes.
func TestFollowsItsUser(t *testing.T) {
	for behind, want := range map[bool]int{false: 1, true: 2} {
		tries, cached := 0, (*v1alpha1.TrainingJob)(nil)
		d := newDesk(t, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
				opts ...client.GetOption) error {
				if cached != nil {
					cached.DeepCopyInto(o.(*v1alpha1.TrainingJob))
					return nil
				}
				return c.Get(ctx, key, o, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
				opts ...client.SubResourcePatchOption) error {
				tries++
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			}})
		d.submit("first")
		if err := d.write(v1alpha1.Pending); err != nil {
			t.Fatal(err)
		}
		j := d.job()
		if behind {
			cached = d.job()
		}
		j.Spec.Suspend = true
		if err := d.api.Update(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		tries = 0
		if err := d.write(v1alpha1.Running); err != nil || tries != want || d.job().Status.Phase != v1alpha1.Running {
			t.Errorf("a cache that is behind: %v: %v after %d tries, want %d", behind, err, tries, want)
		}
		cached, tries, j = nil, 0, d.job()
		d.v.Jobs[0].Spec.GPUs = sched.Rigid(1)
		rec := record.Of(d.v, 0, 2)
		j.Status.Record = rec.String()
		if err := d.api.Status().Update(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		if err := d.write(v1alpha1.Running); !errors.Is(err, ErrFenced) || tries > 0 {
			t.Errorf("behind another leader: %v after %d tries", err, tries)
		}
	}
}

// Ensure that a job which is too large to be written keeps no one waiting.
func TestTooLarge(t *testing.T) {
	tries := 0
	d := newDesk(t, interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object,
		client.Patch, ...client.SubResourcePatchOption) error {
		if tries++; tries > 1 {
			return errDied
		}
		return apierrors.NewInternalError(errors.New("etcdserver: request is too large"))
	}})
	d.fatal = func(err error) bool { return errors.Is(err, errDied) }
	d.submit("first")
	if err := d.write(v1alpha1.Running); err != nil || tries != 1 {
		t.Errorf("%v after %d tries, want none after one", err, tries)
	}
}

// Ensure that no try of any write follows the end of the lease.
func TestLeaseEndsBetweenTries(t *testing.T) {
	busy := apierrors.NewInternalError(errors.New("busy"))
	var d *desk
	tries := 0
	fail := func() error {
		if tries++; tries > 1 {
			return errDied
		}
		d.held = func() error { return errLease }
		return busy
	}
	d = newDesk(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return fail() },
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object,
			...client.SubResourceUpdateOption) error {
			return fail()
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch,
			...client.SubResourcePatchOption) error {
			return fail()
		}})
	d.fatal = func(err error) bool { return errors.Is(err, errDied) }
	d.submit("first")
	for name, write := range map[string]func() error{
		"status": func() error { return d.write(v1alpha1.Running) },
		"blob":   func() error { return d.writeBlob(MemoryMap, []byte("new")) },
		"commit": d.commit,
	} {
		tries, d.held = 0, func() error { return nil }
		if err := write(); !errors.Is(err, ErrFenced) || tries != 1 {
			t.Errorf("%s: %v after %d tries, want %v after one", name, err, tries, ErrFenced)
		}
	}
}

// Ensure that a leader that was replaced in the midst of a batch writes no ConfigMap over that of the next, and that
// one that was not writes over what anybody else has written.
func TestBlobOfAnother(t *testing.T) {
	for _, first := range []bool{false, true} {
		for _, replaced := range []bool{false, true} {
			d := newDesk(t, interceptor.Funcs{})
			key := types.NamespacedName{Namespace: "trainyard", Name: ClusterMap}
			if !first {
				if err := d.writeBlob(ClusterMap, []byte("old")); err != nil {
					t.Fatal(err)
				}
			}
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			if err := client.IgnoreNotFound(d.api.Delete(t.Context(), m)); err != nil {
				t.Fatal(err)
			}
			m = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
				BinaryData: map[string][]byte{blobKey: []byte("other")}}
			if err := d.api.Create(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			m.BinaryData[blobKey] = []byte("another")
			if err := d.api.Update(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			want := "late"
			if replaced {
				d.usurp()
				want = "another"
			}
			err := d.writeBlob(ClusterMap, []byte("late"))
			if bad := d.api.Get(t.Context(), key, m); bad != nil {
				t.Fatal(bad)
			}
			if got := string(m.BinaryData[blobKey]); errors.Is(err, ErrFenced) != replaced || got != want ||
				!replaced && err != nil {
				t.Errorf("first %v, replaced %v: %v, the ConfigMap has %q, want %q", first, replaced, err, got, want)
			}
		}
	}
}

// Ensure that where there is no namespace for the ConfigMaps it is tried and reported again, after a pause each time.
func TestBlobOfNoNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where no time passes between a pause and a try
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		tries := 0
		d := newDesk(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object,
			...client.CreateOption) error {
			if tries++; tries > 99 {
				return errDied
			}
			return apierrors.NewNotFound(corev1.Resource("namespaces"), "trainyard")
		}})
		d.ctx, d.fatal = ctx, func(err error) bool { return errors.Is(err, errDied) }
		if err := d.writeBlob(MemoryMap, []byte("new")); !apierrors.IsNotFound(err) {
			t.Errorf("%v after %d tries", err, tries)
		}
	})
}

// Ensure that a leader writes over the ConfigMap that it loaded, whose version alone says that another has led since.
func TestBlobLoaded(t *testing.T) {
	d := newDesk(t, interceptor.Funcs{})
	if err := d.writeBlob(MemoryMap, []byte("old")); err != nil {
		t.Fatal(err)
	}
	c, l := New(Options{Reader: d.api, Namespace: "trainyard"}), &loaded{blobs: make(map[string]blob)}
	if data, err := c.blob(t.Context(), l, MemoryMap); err != nil || string(data) != "old" {
		t.Fatal(string(data), err)
	}
	if l.blobs[MemoryMap].version != d.blobs[MemoryMap].version || l.blobs[MemoryMap].written {
		t.Errorf("loaded %+v, written %+v", l.blobs[MemoryMap], d.blobs[MemoryMap])
	}
}

// Ensure that nothing is held of a job that is done but what a later write of it needs.
func TestDoneIsLetGoOf(t *testing.T) {
	d := newDesk(t, interceptor.Funcs{})
	d.submit("first")
	d.jobs[0].memory = []byte("much")
	if err := d.write(v1alpha1.Running); err != nil || d.jobs[0].memory == nil {
		t.Fatal(err, d.jobs[0])
	}
	d.v.Jobs[0].State = sched.Done
	if err := d.write(v1alpha1.Succeeded); err != nil || d.jobs[0].memory != nil ||
		!reflect.ValueOf(d.jobs[0].next).IsZero() {
		t.Errorf("%v, held is %+v", err, d.jobs[0])
	}
}
