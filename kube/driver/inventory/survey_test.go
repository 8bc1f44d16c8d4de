package inventory

import (
	"context"
	"errors"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
)

// sliced is an API with slices alone; nil = it knows of none, as one that is older than they are.
type sliced struct {
	client.Reader

	slices []*resourcev1.ResourceSlice
}

func (s sliced) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l, ok := list.(*resourcev1.ResourceSliceList)
	if !ok || s.slices == nil {
		return errors.New("no such objects")
	}
	for _, one := range s.slices {
		l.Items = append(l.Items, *one)
	}
	return nil
}

// Ensure that a survey shows what a driver reports: GPUs alone, of the newest slices, and none of nodes that do not
// join.
func TestSurvey(t *testing.T) {
	t.Parallel()
	plain := func(change func(*corev1.Node)) corev1.Node {
		n, ok := objects.Node("a", 2)[0].(*corev1.Node)
		if !ok {
			t.Fatal("no node")
		}
		if change != nil {
			change(n)
		}
		return *n
	}
	with := func(change func(*resourcev1.ResourceSlice)) *resourcev1.ResourceSlice {
		s := objects.Slice("a", 2)
		change(s)
		return s
	}
	two := []string{"GPU-a-0", "GPU-a-1"}
	for _, c := range []struct {
		name   string
		mode   v1alpha1.Mode
		node   corev1.Node
		slices []*resourcev1.ResourceSlice
		want   Shown
	}{
		{"by number", v1alpha1.Count, plain(nil), nil, Shown{AnyProduct, 2, nil, true, 0}},
		{"by number, though there are slices", v1alpha1.Count, plain(nil),
			[]*resourcev1.ResourceSlice{objects.Slice("a", 4)}, Shown{AnyProduct, 2, nil, true, 0}},
		{"by annotation", v1alpha1.Visible, plain(func(n *corev1.Node) {
			n.Annotations, n.Labels = map[string]string{v1alpha1.AnnotationGPUs: "x, y,"},
				map[string]string{LabelProduct: "V100"}
		}), nil, Shown{"V100", 2, []string{"x", "y"}, true, 0}},
		{"by slice", v1alpha1.Pinned, plain(nil),
			[]*resourcev1.ResourceSlice{objects.Slice("a", 2), objects.Slice("b", 8)}, Shown{"V100", 2, two, true, 32}},
		{"other devices", v1alpha1.Direct, plain(nil),
			[]*resourcev1.ResourceSlice{objects.Slice("a", 2), with(func(s *resourcev1.ResourceSlice) {
				s.Name, s.Spec.Driver = "other", "compute-domain.nvidia.com"
				s.Spec.Devices = []resourcev1.Device{{Name: "channel-0"}, {Name: "daemon-0"}}
			})}, Shown{"V100", 2, two, true, 32}},
		{"an older generation", v1alpha1.Pinned, plain(nil),
			[]*resourcev1.ResourceSlice{objects.Slice("a", 2), with(func(s *resourcev1.ResourceSlice) {
				s.Name, s.Spec.Pool.Generation = "old", 0
			})}, Shown{"V100", 2, two, true, 32}},
		{"a product of the driver's own name", v1alpha1.Pinned, plain(nil),
			[]*resourcev1.ResourceSlice{with(func(s *resourcev1.ResourceSlice) {
				for _, d := range s.Spec.Devices {
					d.Attributes[objects.Driver+"/productName"] = d.Attributes["productName"]
					delete(d.Attributes, "productName")
				}
			})}, Shown{"V100", 2, two, true, 32}},
		{"half a pool", v1alpha1.Pinned, plain(nil),
			[]*resourcev1.ResourceSlice{with(func(s *resourcev1.ResourceSlice) { s.Spec.Pool.ResourceSliceCount = 2 })},
			Shown{}},
		{"no GPU", v1alpha1.Count, plain(func(n *corev1.Node) { n.Status.Allocatable = nil }), nil, Shown{}},
		{"cordoned", v1alpha1.Count, plain(func(n *corev1.Node) { n.Spec.Unschedulable = true }), nil,
			Shown{AnyProduct, 2, nil, false, 0}},
		{"silent", v1alpha1.Count, plain(func(n *corev1.Node) { n.Status.Conditions = nil }), nil,
			Shown{AnyProduct, 2, nil, false, 0}},
	} {
		got, err := Survey(t.Context(), sliced{slices: c.slices}, []corev1.Node{c.node}, c.mode)
		if err != nil || !reflect.DeepEqual(got, map[string]Shown{"a": c.want}) {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
	_, err := Survey(t.Context(), sliced{}, nil, v1alpha1.Pinned)
	if err == nil || err.Error() != "driver: survey: no such objects" {
		t.Errorf("without slices: %v", err)
	}
}
