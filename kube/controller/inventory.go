package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// inventory is what objects say of GPUs beside the driver, which reports them as events: what systems must know beforehand.
type inventory struct {
	products []string            // names of GPU types, sorted
	gpus     map[string]int      // by node
	ready    map[string]bool     // nodes
	uuids    map[string][]string // by node, in order; nil = unknown
	pools    []v1alpha1.GPUPool
	profiles map[string]*v1alpha1.GPUKnown // by UUID
	inputs   inputs
	wrong    wrong
}

// ProductLabel is the label of a node that names its GPUs where slices do not.
const ProductLabel = "nvidia.com/gpu.product"

// inventory reads slices, nodes, pools and profiles.
func (c *Controller) inventory(ctx context.Context) (*inventory, error) {
	in := &inventory{inputs: make(inputs), gpus: make(map[string]int), ready: make(map[string]bool), uuids: make(map[string][]string), profiles: make(map[string]*v1alpha1.GPUKnown)}
	var slicesOf resourcev1.ResourceSliceList
	var nodes corev1.NodeList
	var pools v1alpha1.GPUPoolList
	var profiles v1alpha1.GPUProfileList
	if err := cmp.Or(c.o.Reader.List(ctx, &slicesOf), c.o.Reader.List(ctx, &nodes), c.o.Reader.List(ctx, &pools), c.o.Reader.List(ctx, &profiles)); err != nil {
		return nil, fmt.Errorf("controller: inventory: %w", err)
	}
	for i := range slicesOf.Items {
		s := &slicesOf.Items[i].Spec
		if s.NodeName == nil {
			continue
		}
		in.gpus[*s.NodeName] += len(s.Devices)
		for d := range s.Devices {
			if a := s.Devices[d].Attributes["uuid"]; a.StringValue != nil {
				in.uuids[*s.NodeName] = append(in.uuids[*s.NodeName], *a.StringValue)
			}
			if a := s.Devices[d].Attributes["productName"]; a.StringValue != nil {
				in.product(*a.StringValue)
			}
		}
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		in.ready[n.Name] = slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if list := n.Annotations[v1alpha1.AnnotationGPUs]; list != "" && in.gpus[n.Name] == 0 {
			in.uuids[n.Name] = strings.Split(list, ",")
			in.gpus[n.Name] = len(in.uuids[n.Name])
		}
		if q := n.Status.Allocatable["nvidia.com/gpu"]; in.gpus[n.Name] == 0 {
			in.gpus[n.Name] = int(q.Value())
		}
		in.product(n.Labels[ProductLabel])
	}
	in.pools = pools.Items
	slices.SortFunc(in.pools, func(a, b v1alpha1.GPUPool) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range in.pools {
		in.product(in.pools[i].Spec.GPUType)
		in.inputs.add(&in.pools[i])
	}
	for i := range profiles.Items {
		in.inputs.add(&profiles.Items[i])
		for g := range profiles.Items[i].Spec.GPUs {
			known := &profiles.Items[i].Spec.GPUs[g]
			in.profiles[known.UUID] = known
		}
	}
	slices.Sort(in.products)
	in.wrong = in.check(profiles.Items, nodes.Items)
	return in, nil
}

func (in *inventory) product(name string) {
	if name != "" && !slices.Contains(in.products, name) {
		in.products = append(in.products, name)
	}
}

// header describes the cluster to systems. Types and pools that v knows keep their numbers.
func (in *inventory) header(p *v1alpha1.SchedulerPolicy, v *sched.View) engine.Header {
	h := engine.Header{Origin: p.Status.Origin.UTC().Format(time.RFC3339Nano), Zone: "UTC", Trace: "TrainingJobs", Cluster: "kubernetes",
		System: p.Spec.System, Settings: p.Spec.Settings, Round: p.Spec.Round.Duration, Types: slices.Clone(v.Types)}
	for _, name := range in.products {
		if !slices.Contains(h.Types, name) {
			h.Types = append(h.Types, name)
		}
	}
	if len(h.Types) == 0 {
		h.Types = []string{"gpu"}
	}
	for i := range v.Pools {
		h.Pools = append(h.Pools, v.Pools[i].Spec)
	}
	for i := range in.pools {
		h.Budget += in.pools[i].Spec.BudgetGPUs.AsApproximateFloat64()
		spec := poolSpec(&in.pools[i], h.Types)
		at := slices.IndexFunc(h.Pools, func(s sched.PoolSpec) bool { return s.Name == spec.Name })
		if at < 0 {
			at, h.Pools = len(h.Pools), append(h.Pools, spec)
		}
		h.Pools[at] = spec
		h.GPUs += spec.GPUs * int(spec.Max)
		h.NodeGPUs = max(h.NodeGPUs, spec.GPUs)
	}
	for _, n := range in.gpus {
		h.GPUs += n
		h.NodeGPUs = max(h.NodeGPUs, n)
	}
	h.GPUs = max(h.GPUs, len(v.GPUs))
	return h
}

// poolSpec describes a pool to the engine.
func poolSpec(p *v1alpha1.GPUPool, types []string) sched.PoolSpec {
	s := &p.Spec
	return sched.PoolSpec{Name: p.Name, Type: sched.TypeID(slices.Index(types, s.GPUType)), GPUs: int(s.GPUsPerNode),
		Price: sched.Dollars(s.PricePerGPUHour.AsApproximateFloat64() * float64(s.GPUsPerNode)), Boot: s.Boot.Duration, Billing: s.Billing.Duration,
		Min: s.Min, Max: s.Max}
}

// joins are the nodes that v does not know and that are ready, by name: the order in which a driver tells of them first.
func (in *inventory) joins(v *sched.View) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(in.gpus)) {
		known := slices.ContainsFunc(v.Nodes, func(n sched.Node) bool { return n.Spec.Name == name && n.State != sched.NodeGone })
		if !known && in.ready[name] && in.gpus[name] > 0 {
			list = append(list, name)
		}
	}
	return list
}

// numbered lists the UUIDs of GPUs by number, "" where unknown: those of v, then those of nodes that join.
func (in *inventory) numbered(v *sched.View, joins []string) (uuids []string) {
	for i := range v.Nodes {
		uuids = append(uuids, padded(v.Nodes[i].Spec.Devices, v.Nodes[i].Spec.GPUs)...)
	}
	for _, name := range joins {
		uuids = append(uuids, padded(in.uuids[name], in.gpus[name])...)
	}
	return uuids
}

// padded is list, or so many times nothing where it is not known.
func padded(list []string, n int) []string {
	if len(list) == n {
		return list
	}
	return make([]string, n)
}

// scored are the nodes of which profiles tell scores.
func (in *inventory) scored() map[string]bool {
	nodes := make(map[string]bool)
	for name, list := range in.uuids {
		for _, uuid := range list {
			if known := in.profiles[uuid]; known != nil && len(known.Scores) > 0 {
				nodes[name] = true
			}
		}
	}
	return nodes
}

// scores are the PM scores of so many GPUs by number, of which uuids tells; nil where no profile tells of any. Of others nothing is
// known: they count as the median.
func (in *inventory) scores(uuids []string, gpus int) *variability.Scores {
	s := &variability.Scores{Name: "the GPUProfiles"}
	for _, known := range in.profiles {
		for class := range known.Scores {
			if !slices.Contains(s.Classes, class) {
				s.Classes = append(s.Classes, class)
			}
		}
	}
	if len(s.Classes) == 0 || gpus == 0 {
		return nil
	}
	slices.Sort(s.Classes)
	s.PM = make([][]float64, len(s.Classes))
	for c := range s.PM {
		s.PM[c] = slices.Repeat([]float64{1}, gpus)
	}
	for g := range gpus {
		s.GPUs = append(s.GPUs, variability.GPU{Name: strconv.Itoa(g)})
		if g >= len(uuids) || in.profiles[uuids[g]] == nil {
			continue
		}
		for c, class := range s.Classes {
			if q, told := in.profiles[uuids[g]].Scores[class]; told {
				s.PM[c][g] = q.AsApproximateFloat64()
			}
		}
	}
	return s
}
