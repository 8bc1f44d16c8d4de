package controller

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver"
	driverobserver "github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// begun has a controller lead for so long, in a bubble of package synctest, and returns how often it started. wrap may
// be nil.
func begun(t *testing.T, api client.Client, d time.Duration, wrap func(*driver.Driver) Driver) int {
	t.Helper()
	return begunBy(t, api, driverobserver.NewQueue(), d, wrap)
}

// begunBy is started with a queue of what changes.
func begunBy(t *testing.T, api client.Client, q *driverobserver.Queue, d time.Duration,
	wrap func(*driver.Driver) Driver) (n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	c := New(Options{Client: api, Reader: api, Namespace: "trainyard", Clock: time.Now,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Held: func() error {
			return nil
		},
		Driver: func(s Setup) (Driver, error) {
			n++
			d := driver.New(driver.Options{Client: api, Reader: api, Queue: q, Origin: s.Origin, Mode: s.Policy.Mode,
				DeviceClass:  "gpu.nvidia.com",
				StartTimeout: 10 * time.Minute, Types: s.Type, NewType: s.NewType})
			if wrap != nil {
				return wrap(d), nil
			}
			return d, nil
		}})
	if err := c.Run(ctx); err != nil {
		t.Error(err)
	}
	return n
}

func apiWith(system string, mode v1alpha1.Mode, objects ...client.Object) client.Client {
	objects = append(objects, &v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: PolicyName},
		Spec: v1alpha1.SchedulerPolicySpec{System: system, Mode: mode}})
	return fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.TrainingJob{}, &v1alpha1.SchedulerPolicy{}, &v1alpha1.GPUPool{}).Build()
}

// nodeOf returns a node of two GPUs that names them by number and by annotation.
func nodeOf(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Annotations: map[string]string{v1alpha1.AnnotationGPUs: name + "-0," + name + "-1"}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2"),
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi")}
	return n
}

// sliceOf returns the slice of a node's two GPUs, which names their product by an attribute.
func sliceOf(node string, attribute resourcev1.QualifiedName) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}}
	s.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node,
		Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}}
	for i := range 2 {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"uuid": {StringValue: new(fmt.Sprintf("%s-%d", node, i))}, attribute: {StringValue: new("V100")}}})
	}
	return s
}

// scored returns a profile that scores a GPU of a node.
func scored(node string) *v1alpha1.GPUProfile {
	return &v1alpha1.GPUProfile{ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: v1alpha1.GPUProfileSpec{GPUs: []v1alpha1.GPUKnown{
			{UUID: node + "-0", Scores: map[string]v1alpha1.Score{"A": {Quantity: resource.MustParse("1.2")}}}}}}
}

// Ensure that a controller starts once where its driver reports nothing that could not be known beforehand.
func TestBeginsOnce(t *testing.T) {
	cordoned := nodeOf("a")
	cordoned.Spec.Unschedulable = true
	for _, c := range []struct {
		name, system string
		mode         v1alpha1.Mode
		objects      []client.Object
	}{
		{"by number, no product", "fifo", v1alpha1.Count, []client.Object{nodeOf("a")}},
		{"by annotation, no product", "fifo", v1alpha1.Visible, []client.Object{nodeOf("a")}},
		{"slices", "fifo", v1alpha1.Pinned, []client.Object{nodeOf("a"), sliceOf("a", "productName")}},
		{"slices with names of the driver's own", "fifo", v1alpha1.Pinned,
			[]client.Object{nodeOf("a"), sliceOf("a", "gpu.nvidia.com/productName")}},
		{"a cordoned node before one that is scored", "pal", v1alpha1.Visible,
			[]client.Object{cordoned, nodeOf("c"), scored("c")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if n := begun(t, apiWith(c.system, c.mode, c.objects...), time.Minute, nil); n != 1 {
					t.Errorf("started %d times", n)
				}
			})
		})
	}
}

// typed returns a job of one GPU of a type.
func typed(name string, products ...string) *v1alpha1.TrainingJob {
	j := &v1alpha1.TrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(name),
		Finalizers: []string{v1alpha1.Finalizer}}}
	j.Spec.GPUs.Min, j.Spec.GPUTypes = 1, products
	j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "train"}}
	return j
}

// Ensure that who asks for GPUs that no one knows hears so, has no one start again and keeps no one waiting, and gets
// them once a node that has some joins.
func TestUnknownTypeOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiWith("fifo", v1alpha1.Count, nodeOf("a"), typed("x", "X100", "Y"), typed("z", "GPU"))
		wants := func(name string, phase v1alpha1.Phase, reason string) {
			t.Helper()
			if j := jobOf(t, api, name); j.Status.Phase != phase || j.Status.Reason != reason {
				t.Errorf("%s: %s: %s, want %s: %s", name, j.Status.Phase, j.Status.Reason, phase, reason)
			}
		}
		q := driverobserver.NewQueue()
		time.AfterFunc(time.Minute, func() {
			wants("x", v1alpha1.Pending, `waits for a GPU of type "X100" or "Y": none in the cluster, which has "GPU"`)
			wants("z", v1alpha1.Starting, "starts on a/0")
			b := nodeOf("b")
			b.Labels = map[string]string{"nvidia.com/gpu.product": "X100"}
			if err := api.Create(t.Context(), b); err != nil {
				t.Error(err)
			}
			q.Push(driverobserver.KeysOf(b)...)
		})
		if n := begunBy(t, api, q, 2*time.Minute, nil); n != 2 {
			t.Errorf("started %d times", n)
		}
		wants("x", v1alpha1.Starting, "starts on b/0")
	})
}

// altered is a driver whose Sync is another.
type altered struct {
	*driver.Driver

	sync func([]sched.Event, error) ([]sched.Event, error)
}

func (a altered) Sync(ctx context.Context, v *sched.View) ([]sched.Event, error) {
	return a.sync(a.Driver.Sync(ctx, v))
}

// Ensure that a node that should join before one that is scored, and does not, has the controller start again once, not
// for ever.
func TestBeginsAnewOnceForANodeThatStaysOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiWith("pal", v1alpha1.Visible, nodeOf("a"), nodeOf("b"), nodeOf("c"), nodeOf("d"), scored("c"))
		n := begun(t, api, time.Minute, func(d *driver.Driver) Driver {
			return altered{d, func(events []sched.Event, err error) ([]sched.Event, error) {
				return slices.DeleteFunc(events, func(e sched.Event) bool {
					return e.Kind == sched.NodeJoined && e.NodeSpec.Name == "a"
				}), err
			}}
		})
		if n != 2 {
			t.Errorf("started %d times", n)
		}
	})
}

// Ensure that a controller that finds a reason to start again each time pauses in between.
func TestBeginsAnewWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := begun(t, apiWith("fifo", v1alpha1.Count), 9500*time.Millisecond, func(d *driver.Driver) Driver {
			return altered{d, func([]sched.Event, error) ([]sched.Event, error) { return nil, ErrReload }}
		})
		if n != 10 {
			t.Errorf("started %d times within 9.5 s, want 10", n)
		}
	})
}
