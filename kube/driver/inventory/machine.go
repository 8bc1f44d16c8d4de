package inventory

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/devices"
)

// Machine is a node as the cluster shows it.
type Machine struct {
	UID      types.UID
	Gone     bool // and whatever has its name now is another
	Ready    bool // it answers
	Cordoned bool
	Product  string
	MemGiB   float32          // of a GPU
	GPUs     []devices.Device // in order
	withheld map[string]bool  // by UUID
	unsure   bool             // its slices are being exchanged: GPUs says nothing
	odd      string           // what of its GPUs cannot be, for people; "" = nothing
}

// Find returns the GPU of a UUID, nil if the machine has none.
func (m *Machine) Find(uuid string) *devices.Device {
	if i := slices.IndexFunc(m.GPUs, func(g devices.Device) bool { return g.UUID == uuid }); i >= 0 {
		return &m.GPUs[i]
	}
	return nil
}

// uuids returns the UUIDs of the GPUs in order, nil if they are not known.
func (m *Machine) uuids() []string {
	out := make([]string, len(m.GPUs))
	for i := range m.GPUs {
		if out[i] = m.GPUs[i].UUID; out[i] == "" {
			return nil
		}
	}
	return out
}

// ResourceGPU is how kubelets count GPUs where no slice says which they are.
const ResourceGPU = corev1.ResourceName("nvidia.com/gpu")

// Labels by which nodes say what GPUs they have, where no slice does.
const (
	LabelProduct = "nvidia.com/gpu.product"
	LabelMemory  = "nvidia.com/gpu.memory" // MiB
)

// AnyProduct is the kind of GPUs whose product is not known.
const AnyProduct = "GPU"

// survey returns what a node is in a mode. The profile may be nil.
func survey(node *corev1.Node, list []*resourcev1.ResourceSlice, profile *v1alpha1.GPUProfile,
	mode v1alpha1.Mode) *Machine {
	m := &Machine{UID: node.UID, Ready: isReady(node), Cordoned: node.Spec.Unschedulable,
		withheld: make(map[string]bool)}
	if profile != nil {
		for _, g := range profile.Spec.GPUs {
			m.withheld[g.UUID] = g.Withheld
		}
	}
	switch mode {
	case v1alpha1.Pinned, v1alpha1.Direct:
		m.unsure = !m.read(list)
	case v1alpha1.Visible:
		m.annotated(node)
	default:
		m.counted(node)
	}
	m.sift()
	return m
}

// mostGPUs is how many GPUs a node may have. One that shows more has none: each costs memory and time in the engine.
const mostGPUs = 1024

// sift takes out the GPUs of which no one could say which they are: those of a UUID that several devices have, and all
// where there are too many.
func (m *Machine) sift() {
	of := make(map[string]int, len(m.GPUs))
	for i := range m.GPUs {
		of[m.GPUs[i].UUID]++
	}
	delete(of, "") // it is not known
	var twice []string
	m.GPUs = slices.DeleteFunc(m.GPUs, func(g devices.Device) bool {
		if of[g.UUID] > 1 && !slices.Contains(twice, g.UUID) && len(twice) < 3 {
			twice = append(twice, g.UUID)
		}
		return of[g.UUID] > 1
	})
	if len(twice) > 0 {
		m.odd = fmt.Sprintf("several of its devices have the UUID %s: no job is given these", strings.Join(twice, ", "))
	}
	if n := len(m.GPUs); n > mostGPUs {
		m.odd, m.GPUs = fmt.Sprintf("it has %d GPUs, want at most %d: no job is given any", n, mostGPUs), nil
	}
}

func isReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// read takes GPUs from slices, those of complete pools at their highest generations. It reports false if a pool is
// incomplete: its slices are being exchanged.
func (m *Machine) read(list []*resourcev1.ResourceSlice) bool {
	type pool struct{ driver, name string }
	newest, count := map[pool]int64{}, map[pool]int64{}
	for _, s := range list {
		p := pool{s.Spec.Driver, s.Spec.Pool.Name}
		newest[p] = max(newest[p], s.Spec.Pool.Generation)
	}
	for _, s := range list {
		if p := (pool{s.Spec.Driver, s.Spec.Pool.Name}); s.Spec.Pool.Generation == newest[p] {
			count[p]++
		}
	}
	for _, s := range list {
		p := pool{s.Spec.Driver, s.Spec.Pool.Name}
		if s.Spec.Pool.Generation != newest[p] {
			continue
		}
		if count[p] != s.Spec.Pool.ResourceSliceCount {
			return false
		}
		m.readSlice(s)
	}
	slices.SortFunc(m.GPUs, func(a, b devices.Device) int {
		return cmp.Or(cmp.Compare(number(a.ID.Name), number(b.ID.Name)), strings.Compare(a.ID.Name, b.ID.Name),
			strings.Compare(a.UUID, b.UUID))
	})
	return true
}

// readSlice takes the whole GPUs of a slice. Those of a node are alike: of another product than the first are left out.
func (m *Machine) readSlice(s *resourcev1.ResourceSlice) {
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		uuid, product := attribute(d, s.Spec.Driver, "uuid"),
			cmp.Or(attribute(d, s.Spec.Driver, "productName"), AnyProduct)
		if kind := attribute(d, s.Spec.Driver, "type"); uuid == "" || kind != "" && kind != "gpu" {
			continue
		}
		if m.Product = cmp.Or(m.Product, product); m.Product != product {
			continue
		}
		g := devices.Device{UUID: uuid, ID: devices.ID{Driver: s.Spec.Driver, Pool: s.Spec.Pool.Name, Name: d.Name},
			Tainted: slices.ContainsFunc(d.Taints, isHard)}
		g.Shareable = d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
		for _, name := range []resourcev1.QualifiedName{"memory", resourcev1.QualifiedName(s.Spec.Driver + "/memory")} {
			if c, ok := d.Capacity[name]; ok {
				m.MemGiB = gib(c.Value.Value())
			}
		}
		m.GPUs = append(m.GPUs, g)
	}
}

// isHard reports whether a taint keeps jobs off: some are mere remarks.
func isHard(t resourcev1.DeviceTaint) bool { return t.Effect != resourcev1.DeviceTaintEffectNone }

// attribute returns an attribute of a device that is a string, by its short name or the one with the driver's.
func attribute(d *resourcev1.Device, driver, name string) string {
	a, ok := d.Attributes[resourcev1.QualifiedName(name)]
	if !ok {
		a = d.Attributes[resourcev1.QualifiedName(driver+"/"+name)]
	}
	if a.StringValue == nil {
		return ""
	}
	return *a.StringValue
}

func gib(bytes int64) float32 { return float32(float64(bytes) / (1 << 30)) }

var digits = regexp.MustCompile(`[0-9]+$`)

// number returns the number at the end of the name of a device, so that gpu-10 comes after gpu-9; -1 if there is none.
func number(name string) int {
	n, err := strconv.Atoi(digits.FindString(name))
	if err != nil {
		return -1
	}
	return n
}

// annotated takes the UUIDs that an agent wrote on the node.
func (m *Machine) annotated(node *corev1.Node) {
	for uuid := range strings.SplitSeq(node.Annotations[v1alpha1.AnnotationGPUs], ",") {
		if uuid = strings.TrimSpace(uuid); uuid != "" && m.Find(uuid) == nil {
			m.GPUs = append(m.GPUs, devices.Device{UUID: uuid})
		}
	}
	m.labelled(node)
}

// counted takes as many GPUs as the kubelet gives away.
func (m *Machine) counted(node *corev1.Node) {
	n := node.Status.Allocatable[ResourceGPU]
	m.GPUs = make([]devices.Device, min(max(n.Value(), 0), mostGPUs+1))
	m.labelled(node)
}

func (m *Machine) labelled(node *corev1.Node) {
	m.Product = cmp.Or(node.Labels[LabelProduct], AnyProduct)
	if mib, err := strconv.ParseInt(node.Labels[LabelMemory], 10, 64); err == nil {
		m.MemGiB = gib(mib << 20)
	}
}
