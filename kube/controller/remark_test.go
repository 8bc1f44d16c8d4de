package controller

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	driverobserver "github.com/trainyard/trainyard/kube/driver/observer"
)

func policyOf(t *testing.T, api client.Client) *v1alpha1.SchedulerPolicy {
	t.Helper()
	p := new(v1alpha1.SchedulerPolicy)
	if err := api.Get(t.Context(), types.NamespacedName{Name: PolicyName}, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// Ensure that the policy says which of the things are missing that its mode needs, and says so no more once they are
// there.
func TestPolicySaysWhatIsMissing(t *testing.T) {
	forbidden := func(o any) error {
		if _, classes := o.(*resourcev1.DeviceClassList); classes {
			return apierrors.NewForbidden(resourcev1.Resource("deviceclasses"), "", errors.New("no role"))
		}
		return nil
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.nvidia.com"}}
	annotated, plain := nodeOf("a"), nodeOf("a")
	plain.Annotations, plain.Status.Allocatable = nil, nil
	for _, c := range []struct {
		mode    v1alpha1.Mode
		objects []client.Object
		refuse  func(any) error
		want    string
		then    client.Object // mends it
	}{
		{v1alpha1.Pinned, []client.Object{nodeOf("a"), sliceOf("a", "productName"), class}, nil, "", nil},
		{v1alpha1.Pinned, []client.Object{nodeOf("a"), sliceOf("a", "productName")}, nil,
			`no job starts: there is no DeviceClass "gpu.nvidia.com"; install the DRA driver that brings it, or set ` +
				`deviceClass`, class},
		{v1alpha1.Direct, []client.Object{nodeOf("a"), sliceOf("a", "productName"), class}, forbidden,
			"no job starts: the mode dra-direct needs the ClusterRole trainyard-direct; bind it to the controller's " +
				"account", nil},
		{v1alpha1.Pinned, []client.Object{nodeOf("a"), class}, nil,
			"there are no GPUs: the mode is dra-pinned, and no ResourceSlice of a node names one; is the DRA " +
				"driver at work?", sliceOf("a", "productName")},
		{v1alpha1.Count, []client.Object{plain}, nil, "there are no GPUs: the mode is count, and no node offers " +
			"nvidia.com/gpu; is the device plugin at work?", nodeOf("b")},
		{v1alpha1.Visible, []client.Object{plain}, nil, "there are no GPUs: the mode is visible-devices, and no node " +
			"bears the annotation trainyard.dev/gpus", nodeOf("b")},
		{v1alpha1.Visible, []client.Object{annotated}, nil, "", nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			base := apiWith("fifo", c.mode, c.objects...).(client.WithWatch)
			p := policyOf(t, base)
			p.Spec.DeviceClass = "gpu.nvidia.com"
			if err := base.Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			api := interceptor.NewClient(base,
				interceptor.Funcs{List: func(ctx context.Context, w client.WithWatch, l client.ObjectList,
					o ...client.ListOption) error {
					if c.refuse != nil && c.refuse(l) != nil {
						return c.refuse(l)
					}
					return w.List(ctx, l, o...)
				}})
			q := driverobserver.NewQueue()
			time.AfterFunc(time.Minute, func() {
				if is := policyOf(t, api).Status.Message; is != c.want {
					t.Errorf("%s: %q, want %q", c.mode, is, c.want)
				}
				if c.then != nil {
					o := c.then.DeepCopyObject().(client.Object)
					o.SetResourceVersion("")
					if err := api.Create(t.Context(), o); err != nil {
						t.Error(err)
					}
					q.Push(driverobserver.KeysOf(o)...)
				}
			})
			begunBy(t, api, q, 90*time.Second, nil)
			if is := policyOf(t, api).Status.Message; c.then != nil && is != "" {
				t.Errorf("%s: once it is mended: %q", c.mode, is)
			}
		})
	}
}

// Ensure that what is missing is not taken for there because the API server does not answer for a while.
func TestMissingWhileNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		base := apiWith("fifo", v1alpha1.Pinned, nodeOf("a"), sliceOf("a", "productName"),
			typed("x")).(client.WithWatch)
		api := interceptor.NewClient(base,
			interceptor.Funcs{Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object,
				opts ...client.GetOption) error {
				if _, class := o.(*resourcev1.DeviceClass); class && time.Since(begin) > 30*time.Second &&
					time.Since(begin) < 50*time.Second {
					return apierrors.NewInternalError(errors.New("busy"))
				}
				return w.Get(ctx, key, o, opts...)
			}})
		begun(t, api, 80*time.Second, nil)
		if is := policyOf(t, base).Status.Message; !strings.HasPrefix(is, "no job starts: there is no DeviceClass") {
			t.Errorf("%q", is)
		}
	})
}

// Ensure that the policy says that a system starts again for a minute, without what only the log is for.
func TestBeginningAnewIsSaidForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiWith("fifo", v1alpha1.Count, nodeOf("a"), wide("x"), wide("y"))
		begun(t, api, 20*time.Second, nil)
		restate(t, api, "y", func(was *v1alpha1.TrainingJobStatus) { was.Memory = []byte("spoilt") })
		time.Sleep(time.Hour) // no one leads
		time.AfterFunc(40*time.Second, func() {
			if is := policyOf(t, api).Status.Message; is !=
				"the system starts again: what it remembered is of another make of it" {
				t.Errorf("after 40 s: %q", is)
			}
		})
		begun(t, api, 80*time.Second, nil)
		if is := policyOf(t, api).Status.Message; is != "" {
			t.Errorf("after 80 s: %q", is)
		}
	})
}

// Ensure that where no one decides the policy says so, and what is to be done about it.
func TestPolicySaysThatNobodyDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiWith("boa", v1alpha1.Count, nodeOf("a"))
		begun(t, api, 10*time.Second, nil)
		is := policyOf(t, api).Status.Message
		if !strings.HasPrefix(is, "no one decides: ") ||
			!strings.HasSuffix(is, "budget 0, want GPUs rented on average, > 0; set budgetGPUs of a GPUPool") {
			t.Errorf("%q", is)
		}
	})
}

// Ensure that where the policy is deleted and made again the times of jobs go on counting from where they did, and that
// its leader comes after the one who wrote the records.
func TestPolicyMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apiWith("fifo", v1alpha1.Count, nodeOf("a"), wide("x"))
		for range 3 {
			begun(t, api, 20*time.Second, nil)
		}
		was := policyOf(t, api)
		if err := api.Delete(t.Context(), was); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		p := &v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: PolicyName}, Spec: was.Spec}
		if err := api.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		begun(t, api, 20*time.Second, nil)
		is := policyOf(t, api).Status
		if !is.Origin.Equal(was.Status.Origin) || is.Leader < 2 || time.Duration(is.Now) < time.Hour {
			t.Errorf("the status was %+v and is %+v", was.Status, is)
		}
	})
}
