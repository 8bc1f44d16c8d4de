package inventory

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/trainyard/trainyard/kube/driver/internal/objects"
)

// Ensure that a GPU is tainted if one of its taints keeps jobs off.
func TestTaints(t *testing.T) {
	none, hard := resourcev1.DeviceTaintEffectNone, resourcev1.DeviceTaintEffectNoExecute
	for _, c := range []struct {
		effects []resourcev1.DeviceTaintEffect
		want    bool
	}{{nil, false}, {[]resourcev1.DeviceTaintEffect{none}, false}, {[]resourcev1.DeviceTaintEffect{hard}, true},
		{[]resourcev1.DeviceTaintEffect{hard, none}, true}, {[]resourcev1.DeviceTaintEffect{none, hard}, true}} {
		s := objects.Slice("a", 1)
		for _, e := range c.effects {
			s.Spec.Devices[0].Taints = append(s.Spec.Devices[0].Taints, resourcev1.DeviceTaint{Key: "x", Effect: e})
		}
		var m Machine
		if m.read([]*resourcev1.ResourceSlice{s}); m.GPUs[0].Tainted != c.want {
			t.Errorf("effects %v: tainted %v, want %v", c.effects, m.GPUs[0].Tainted, c.want)
		}
	}
}
