package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

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

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/sched"
)

const (
	space    = objects.Namespace
	class    = objects.Driver
	kubelet  = "test/kubelet" // finalizer of pods: they go when their kubelet says so
	lifetime = "LIFETIME"     // variable: how long the process of a pod runs
	code     = "CODE"         // variable: its exit code
	stopping = 20 * time.Millisecond
)

var origin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// cluster is an API server without validation, whose watchers push keys into a queue, with a scheduler, a
// controller-manager and kubelets that do what they do when tick is called.
type cluster struct {
	testing.TB
	client.WithWatch
	queue *observer.Queue

	mu     sync.Mutex
	nextID int
	fail   func(verb string, o client.Object) error // before a write; nil = none fails
	lose   func(verb string, o client.Object) error // after a write; nil = no answer is lost
	silent map[string]bool                          // nodes whose kubelets do nothing
	stuck  bool                                     // claims are not given back
	skew   time.Duration                            // by which the clock of the API server is ahead
	began  map[types.UID]time.Time                  // when processes were started
	asked  map[types.UID]time.Time                  // and asked to end
	writes []string
}

func newCluster(t testing.TB, objects ...client.Object) *cluster {
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, v1alpha1.AddToScheme(scheme))
	c := &cluster{TB: t, queue: observer.NewQueue(), silent: map[string]bool{}, began: map[types.UID]time.Time{},
		asked: map[types.UID]time.Time{}}
	plain := fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&v1alpha1.TrainingJob{}, &v1alpha1.GPUPool{}, &corev1.Pod{}, &corev1.Node{},
			&resourcev1.ResourceClaim{}).Build()
	c.WithWatch = interceptor.NewClient(plain, interceptor.Funcs{
		Create: func(ctx context.Context, api client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(c.uid())
			o.SetCreationTimestamp(metav1.NewTime(time.Now().Add(c.skew)))
			if pod, ok := o.(*corev1.Pod); ok {
				pod.Finalizers = append(pod.Finalizers, kubelet)
				pod.Status.Phase = corev1.PodPending
			}
			return c.write("create", o, func() error { return api.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, api client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return c.write("delete", o, func() error { return c.delete(ctx, api, o, opts...) })
		},
		Update: func(ctx context.Context, api client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return c.write("update", o, func() error { return api.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, api client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			return c.write("patch", o, func() error { return api.Patch(ctx, o, p, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, api client.Client, sub string, o client.Object,
			opts ...client.SubResourceUpdateOption) error {
			return c.write("update "+sub, o, func() error { return api.SubResource(sub).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, api client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			return c.write("patch "+sub, o, func() error { return api.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, api client.Client, sub string, o, what client.Object,
			_ ...client.SubResourceCreateOption) error {
			b := what.(*corev1.Binding)
			return c.write("create "+sub, o, func() error {
				pod := new(corev1.Pod)
				if err := api.Get(ctx, client.ObjectKeyFromObject(o), pod); err != nil {
					return err
				}
				pod.Spec.NodeName = b.Target.Name
				return api.Update(ctx, pod)
			})
		},
	})
	for _, o := range objects {
		must(t, c.Create(t.Context(), o))
	}
	c.queue.Take()
	c.writes = nil
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) uid() types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	return types.UID(fmt.Sprint("uid-", c.nextID))
}

// write does a write, unless it is to fail, and notifies the watchers.
func (c *cluster) write(verb string, o client.Object, do func() error) error {
	c.mu.Lock()
	fail := c.fail
	c.mu.Unlock()
	if fail != nil {
		if err := fail(verb, o); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	c.mu.Lock()
	c.writes = append(c.writes, fmt.Sprintf("%s %T %s", verb, o, o.GetName()))
	c.mu.Unlock()
	c.queue.Push(observer.KeysOf(o)...)
	if c.lose != nil {
		return c.lose(verb, o)
	}
	return nil
}

// delete is what the API server makes of a deletion: a pod that has ended, or is given up, goes at once.
func (c *cluster) delete(ctx context.Context, api client.WithWatch, o client.Object,
	opts ...client.DeleteOption) error {
	if pod, ok := o.(*corev1.Pod); ok {
		now := new(corev1.Pod)
		if err := api.Get(ctx, client.ObjectKeyFromObject(pod), now); err != nil {
			return err
		}
		o.SetLabels(now.Labels)
		options := (&client.DeleteOptions{}).ApplyOptions(opts)
		if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != now.UID {
			return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, now.Name,
				errors.New("the UID is another"))
		}
		forced := options.GracePeriodSeconds != nil && *options.GracePeriodSeconds == 0
		if writer.IsOver(now) || forced || now.Spec.NodeName == "" {
			now.Finalizers = nil
			if err := api.Update(ctx, now); err != nil {
				return err
			}
			if now.DeletionTimestamp != nil {
				return nil
			}
			o.SetResourceVersion(now.ResourceVersion)
			return api.Delete(ctx, now)
		}
	}
	return api.Delete(ctx, o, opts...)
}

// setFail has writes fail from now on as f says.
func (c *cluster) setFail(f func(verb string, o client.Object) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = f
}

// tick lets everybody do what there is to be done.
func (c *cluster) tick() {
	ctx := context.Background()
	var pods corev1.PodList
	if c.List(ctx, &pods) != nil {
		return
	}
	for i := range pods.Items {
		c.mind(ctx, &pods.Items[i])
	}
	c.mu.Lock()
	stuck := c.stuck
	c.mu.Unlock()
	if !stuck {
		c.deallocate(ctx)
	}
}

// mind does for a pod what a scheduler and a kubelet do. Its writes fail where others were quicker: then the next tick
// does it.
func (c *cluster) mind(ctx context.Context, p *corev1.Pod) {
	c.mu.Lock()
	began, asked := c.began[p.UID], c.asked[p.UID]
	silent := c.silent[p.Spec.NodeName]
	c.mu.Unlock()
	over := writer.IsOver(p)
	switch {
	case silent:
	case p.DeletionTimestamp != nil && (over || began.IsZero() || !asked.IsZero() && time.Since(asked) >= stopping):
		p.Finalizers = nil
		_ = c.Update(ctx, p)
	case p.DeletionTimestamp != nil && asked.IsZero():
		c.mu.Lock()
		c.asked[p.UID] = time.Now()
		c.mu.Unlock()
	case over || p.DeletionTimestamp != nil:
	case p.Spec.NodeName == "":
		c.schedule(ctx, p)
	case began.IsZero():
		if c.reserved(ctx, p) {
			c.mu.Lock()
			c.began[p.UID] = time.Now()
			c.mu.Unlock()
			p.Status.Phase = corev1.PodRunning
			_ = c.Status().Update(ctx, p)
		}
	case variable(p, lifetime) != "":
		if d, err := time.ParseDuration(variable(p, lifetime)); err == nil && time.Since(began) >= d {
			n, _ := strconv.Atoi(variable(p, code))
			c.exit(ctx, p, int32(n))
		}
	}
}

// exit has the process of a pod end.
func (c *cluster) exit(ctx context.Context, p *corev1.Pod, code int32) {
	p.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		p.Status.Phase = corev1.PodFailed
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code,
			FinishedAt: metav1.Now()}}}}
	_ = c.Status().Update(ctx, p)
}

func variable(p *corev1.Pod, name string) string {
	for _, e := range p.Spec.Containers[0].Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

// reserved reports whether the claims of a pod are allocated and reserved for it.
func (c *cluster) reserved(ctx context.Context, p *corev1.Pod) bool {
	for _, x := range p.Spec.ResourceClaims {
		var claim resourcev1.ResourceClaim
		if c.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: *x.ResourceClaimName}, &claim) != nil ||
			claim.Status.Allocation == nil ||
			!slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
				return r.UID == p.UID
			}) {
			return false
		}
	}
	return true
}

var quoted = regexp.MustCompile(`"([^"]*)"`)

// schedule allocates the claims of a pod and binds it, if its devices are free, as kube-scheduler does.
func (c *cluster) schedule(ctx context.Context, p *corev1.Pod) {
	if p.Spec.SchedulerName != "" {
		return
	}
	required := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	node := required.NodeSelectorTerms[0].MatchFields[0].Values[0]
	var all resourcev1.ResourceClaimList
	if c.List(ctx, &all) != nil {
		return
	}
	held := map[string]bool{}
	for i := range all.Items {
		if a := all.Items[i].Status.Allocation; a != nil {
			for _, r := range a.Devices.Results {
				held[r.Pool+"/"+r.Device] = r.ShareID == nil
			}
		}
	}
	for _, x := range p.Spec.ResourceClaims {
		var claim resourcev1.ResourceClaim
		if c.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: *x.ResourceClaimName}, &claim) != nil {
			return
		}
		if claim.Status.Allocation == nil {
			results := []resourcev1.DeviceRequestAllocationResult{}
			exact := claim.Spec.Devices.Requests[0].Exactly
			for _, uuid := range quoted.FindAllStringSubmatch(exact.Selectors[0].CEL.Expression, -1)[1:] {
				device := "gpu-" + uuid[1][len(uuid[1])-1:]
				if held[node+"/"+device] {
					return
				}
				r := resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: class, Pool: node, Device: device}
				if exact.Capacity != nil {
					share := types.UID("share-" + string(claim.UID))
					r.ShareID = &share
				}
				results = append(results, r)
			}
			claim.Finalizers = []string{resourcev1.Finalizer}
			if c.Update(ctx, &claim) != nil {
				return
			}
			claim.Status.Allocation = &resourcev1.AllocationResult{
				Devices: resourcev1.DeviceAllocationResult{Results: results}}
		}
		claim.Status.ReservedFor = append(claim.Status.ReservedFor,
			resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p.Name, UID: p.UID})
		if c.Status().Update(ctx, &claim) != nil {
			return
		}
	}
	p.Spec.NodeName = node
	_ = c.Update(ctx, p)
}

// deallocate gives back the claims that no pod needs any more, as the controller-manager does.
func (c *cluster) deallocate(ctx context.Context) {
	var all resourcev1.ResourceClaimList
	_ = c.List(ctx, &all)
	for i := range all.Items {
		claim := &all.Items[i]
		n := len(claim.Status.ReservedFor)
		claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor,
			func(r resourcev1.ResourceClaimConsumerReference) bool {
				var p corev1.Pod
				err := c.Get(ctx, types.NamespacedName{Namespace: claim.Namespace, Name: r.Name}, &p)
				return client.IgnoreNotFound(err) == nil && (err != nil || p.UID != r.UID || writer.IsOver(&p))
			})
		unused := n == 0 && claim.DeletionTimestamp != nil // and never allocated
		if !unused && len(claim.Status.ReservedFor) == n {
			continue
		}
		if len(claim.Status.ReservedFor) == 0 {
			claim.Status.Allocation = nil
		}
		if c.Status().Update(ctx, claim) == nil && claim.Status.Allocation == nil &&
			slices.Contains(claim.Finalizers, resourcev1.Finalizer) {
			claim.Finalizers = nil
			_ = c.Update(ctx, claim)
		}
	}
}

// world is a driver at work in a cluster, and the state of an engine that folds what it reports.
type world struct {
	*cluster
	d      *Driver
	s      *engine.State
	v      *sched.View
	events []sched.Event // all that was reported
}

func options(c *cluster) Options {
	return Options{Client: c, Reader: c, Queue: c.queue, Origin: origin, Mode: v1alpha1.Pinned, DeviceClass: class,
		StartTimeout: 10 * time.Minute,
		Types: func(product string) (sched.TypeID, error) {
			return sched.TypeID(slices.Index([]string{"V100", "GPU"}, product)), nil
		}}
}

// open returns a driver in a cluster, in step. Tests that use it run in a bubble of package synctest.
func open(t *testing.T, c *cluster, change func(*Options)) *world {
	t.Helper()
	o := options(c)
	if change != nil {
		change(&o)
	}
	s := engine.NewState(eventlog.Header{Types: []string{"V100", "GPU"}, ShareLimit: 2})
	w := &world{cluster: c, s: s, v: s.View()}
	w.take(o)
	return w
}

// take has a new driver take over.
func (w *world) take(o Options) {
	w.Helper()
	w.d = New(o)
	w.Cleanup(w.d.Close)
	events, err := w.d.Sync(w.Context(), w.v)
	must(w, err)
	w.fold(events)
}

// fold folds events as the engine does: those of an instant in the order of their kinds.
func (w *world) fold(events []sched.Event) {
	slices.SortStableFunc(events, func(a, b sched.Event) int { return int(a.Kind) - int(b.Kind) })
	for i := range events {
		w.s.Apply(&events[i])
		w.events = append(w.events, events[i])
	}
}

// pass lets a time pass, in steps small enough for everybody to do their part.
func (w *world) pass(d time.Duration) { w.Helper(); w.passBy(max(5*time.Millisecond, d/200), d) }

func (w *world) passBy(step, d time.Duration) {
	w.Helper()
	for end := w.d.clock.read().Add(d); w.d.clock.now < end; {
		w.tick()
		events, err := w.d.Next(w.Context(), min(w.d.clock.read().Add(step), end))
		must(w, err)
		w.fold(slices.DeleteFunc(events, func(e sched.Event) bool { return e.Kind == sched.Ticked }))
	}
}

// settle lets pass what everybody needs to do what there is to be done.
func (w *world) settle() { w.Helper(); w.pass(500 * time.Millisecond) }

// order gives a job a target and the order to start on it.
func (w *world) order(id sched.JobID, c sched.Config, gpus ...sched.GPUID) sched.Action {
	w.Helper()
	now := w.v.Now
	w.s.Apply(&sched.Event{Time: now, Kind: sched.Decided, Job: id, Target: &sched.Target{Job: id, Config: c},
		GPUs: gpus})
	n := w.v.Jobs[id].Attempts + 1
	w.s.Apply(&sched.Event{Time: now, Kind: sched.Ordered, Job: id, Attempt: n, Code: int32(sched.Start)})
	return sched.Action{Kind: sched.Start, Job: id, Attempt: n, GPUs: w.v.Jobs[id].GPUs, Config: c}
}

func (w *world) start(id sched.JobID, gpus ...sched.GPUID) {
	w.Helper()
	w.startAs(id, sched.Config{}, gpus...)
}

func (w *world) startAs(id sched.JobID, c sched.Config, gpus ...sched.GPUID) {
	w.Helper()
	must(w, w.d.Apply(w.Context(), sched.Plan{Actions: []sched.Action{w.order(id, c, gpus...)}}))
}

// stop takes a job's target away and orders its attempt to stop.
func (w *world) stop(id sched.JobID) {
	w.Helper()
	now, n := w.v.Now, w.v.Jobs[id].Attempts
	why := sched.Preempted
	if w.v.Jobs[id].Cancel {
		why = sched.Cancelled
	}
	w.s.Apply(&sched.Event{Time: now, Kind: sched.Decided, Job: id, Target: &sched.Target{Job: id}})
	w.s.Apply(&sched.Event{Time: now, Kind: sched.Ordered, Job: id, Attempt: n, Code: int32(sched.Stop)})
	must(w, w.d.Apply(w.Context(),
		sched.Plan{Actions: []sched.Action{{Kind: sched.Stop, Job: id, Attempt: n, Why: why}}}))
}

// of returns the events of a kind.
func (w *world) of(k sched.EventKind) (list []sched.Event) {
	for _, e := range w.events {
		if e.Kind == k {
			list = append(list, e)
		}
	}
	return list
}

// last returns the one event of a kind that was reported last; the test fails if there is none.
func (w *world) last(k sched.EventKind) sched.Event {
	w.Helper()
	list := w.of(k)
	if len(list) == 0 {
		w.Fatalf("no %v was reported, but %v", k, kinds0(w.events))
	}
	return list[len(list)-1]
}

func kinds0(events []sched.Event) (words []string) {
	for _, e := range events {
		words = append(words, e.Kind.String())
	}
	return words
}

// pod returns a pod, nil if there is none.
func (w *world) podOf(name string) *corev1.Pod {
	p := new(corev1.Pod)
	if err := w.Get(w.Context(), types.NamespacedName{Namespace: space, Name: name}, p); err != nil {
		must(w, client.IgnoreNotFound(err))
		return nil
	}
	return p
}

// claimNamed returns a claim, nil if there is none.
func (w *world) claimNamed(name string) *resourcev1.ResourceClaim {
	c := new(resourcev1.ResourceClaim)
	if err := w.Get(w.Context(), types.NamespacedName{Namespace: space, Name: name}, c); err != nil {
		must(w, client.IgnoreNotFound(err))
		return nil
	}
	return c
}

// attempt checks how the attempt of a job stands.
func (w *world) attempt(id sched.JobID, want sched.AttemptState) {
	w.Helper()
	if got := w.v.Jobs[id].Attempt; got != want {
		w.Fatalf("the attempt of job %d is %v, want %v; reported: %v", id, got, want, kinds0(w.events))
	}
}

// change updates an object as f says.
func change[T client.Object](w *cluster, o T, f func(T)) {
	w.Helper()
	must(w, w.Get(w.Context(), client.ObjectKeyFromObject(o), o))
	f(o)
	must(w, w.Update(w.Context(), o))
}

// changeStatus updates the status of an object as f says.
func changeStatus[T client.Object](w *cluster, o T, f func(T)) {
	w.Helper()
	must(w, w.Get(w.Context(), client.ObjectKeyFromObject(o), o))
	f(o)
	must(w, w.Status().Update(w.Context(), o))
}

func nodeNamed(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

type (
	resourceSlice = resourcev1.ResourceSlice
	deviceClass   = resourcev1.DeviceClass
	claimList     = resourcev1.ResourceClaimList
)

// slotNameOf is the name of the claim of a GPU that jobs share.
func slotNameOf(uuid string) string {
	hash := sha256.Sum256([]byte(uuid))
	return strings.ToLower(uuid) + "-" + hex.EncodeToString(hash[:4])
}
