package inventory

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
)

// Ensure that a node of many GPUs joins, and that one of too many, or GPUs of which several say that they are the same,
// are left out and reported once, where the node says so.
func TestSift(t *testing.T) {
	for _, c := range []struct {
		name string
		gpus int
		same []int // they have the UUID of the first of them
		has  int
		odd  string
	}{
		{"128 GPUs", 128, nil, 128, ""},
		{"1,024 GPUs", 1024, nil, 1024, ""},
		{"8,192 devices", 8192, nil, 0, "it has 8192 GPUs, want at most 1024: no job is given any"},
		{"a UUID twice", 4, []int{1, 3}, 2, "several of its devices have the UUID GPU-a-1: no job is given these"},
		{"a UUID three times", 3, []int{0, 1, 2}, 0,
			"several of its devices have the UUID GPU-a-0: no job is given these"},
	} {
		list := objects.Node("a", c.gpus)
		slice := list[1].(*resourcev1.ResourceSlice)
		for _, i := range c.same {
			slice.Spec.Devices[i].Attributes["uuid"] = slice.Spec.Devices[c.same[0]].Attributes["uuid"]
		}
		b := newBench(t, list...)
		var said []string
		b.in.o.Event = func(_ client.Object, reason, text string) { said = append(said, reason+": "+text) }
		joined := 0
		for range 2 {
			for _, e := range b.look("a").Events {
				if e.NodeSpec != nil {
					joined = e.NodeSpec.GPUs
				}
			}
		}
		if joined != c.has {
			t.Errorf("%s: it joins with %d GPUs, want %d", c.name, joined, c.has)
		}
		if want := []string{"OddGPUs: " + c.odd}; c.odd != "" && !slices.Equal(said, want) ||
			c.odd == "" && len(said) > 0 {
			t.Errorf("%s: %q", c.name, said)
		}
	}
	node := objects.Node("a", 1)[0].(*corev1.Node)
	node.Status.Allocatable[ResourceGPU] = resource.MustParse("8E")
	if m := survey(node, nil, nil, v1alpha1.Count); len(m.GPUs) > 0 || m.odd == "" {
		t.Errorf("%d GPUs of a node that offers 8E, %q", len(m.GPUs), m.odd)
	}
}
