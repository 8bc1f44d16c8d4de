package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	driverinventory "github.com/trainyard/trainyard/kube/driver/inventory"
	driverpools "github.com/trainyard/trainyard/kube/driver/pools"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// inventory is what objects say of GPUs in addition to the driver, which reports them as events: what systems must know
// beforehand.
type inventory struct {
	products []string                         // names of GPU types, sorted
	nodes    map[string]driverinventory.Shown // by name
	pools    []v1alpha1.GPUPool
	profiles map[string]*v1alpha1.GPUKnown // by UUID
	inputs   inputs
	wrong    wrong
}

// inventory reads nodes, what they show of their GPUs in a mode, pools and profiles.
func (c *Controller) inventory(ctx context.Context, mode v1alpha1.Mode) (*inventory, error) {
	in := &inventory{inputs: make(inputs), profiles: make(map[string]*v1alpha1.GPUKnown)}
	var nodes corev1.NodeList
	var pools v1alpha1.GPUPoolList
	var profiles v1alpha1.GPUProfileList
	if err := cmp.Or(c.o.Reader.List(ctx, &nodes), c.o.Reader.List(ctx, &pools),
		c.o.Reader.List(ctx, &profiles)); err != nil {
		return nil, fmt.Errorf("controller: inventory: %w", err)
	}
	var err error
	if in.nodes, err = driverinventory.Survey(ctx, c.o.Reader, nodes.Items, mode); err != nil {
		return nil, fmt.Errorf("controller: inventory: %w", err)
	}
	for _, n := range in.nodes {
		in.product(n.Product)
	}
	in.pools = pools.Items
	slices.SortFunc(in.pools, func(a, b v1alpha1.GPUPool) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range in.pools {
		in.inputs.add(&in.pools[i])
	}
	in.pools = slices.DeleteFunc(in.pools, func(p v1alpha1.GPUPool) bool { return p.DeletionTimestamp != nil })
	for i := range in.pools {
		in.product(in.pools[i].Spec.GPUType)
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

// header describes the cluster to systems. Types and pools that v knows keep their numbers. A type that no one has or
// names any more has no name from then on: what is remembered under its number means nothing else, and one who comes
// back under the name has another.
func (in *inventory) header(p *v1alpha1.SchedulerPolicy, v *sched.View) eventlog.Header {
	h := eventlog.Header{Origin: p.Status.Origin.UTC().Format(time.RFC3339Nano), Zone: "UTC", Trace: "TrainingJobs",
		Cluster: "kubernetes",
		System:  p.Spec.System, Settings: p.Spec.Settings, Round: p.Spec.Round.Duration, Types: slices.Clone(v.Types)}
	named := namedTypes(v)
	for t, name := range h.Types {
		if !slices.Contains(in.products, name) && !named[sched.TypeID(t)] {
			h.Types[t] = ""
		}
	}
	for _, name := range in.products {
		if !slices.Contains(h.Types, name) {
			h.Types = append(h.Types, name)
		}
	}
	if len(h.Types) == 0 {
		h.Types = []string{driverinventory.AnyProduct}
	}
	for i := range v.Pools {
		h.Pools = append(h.Pools, v.Pools[i].Spec)
	}
	for i := range in.pools {
		h.Budget += in.pools[i].Spec.BudgetGPUs.AsApproximateFloat64()
		spec := driverpools.Spec(&in.pools[i], sched.TypeID(slices.Index(h.Types, in.pools[i].Spec.GPUType)))
		at := slices.IndexFunc(h.Pools, func(s sched.PoolSpec) bool { return s.Name == spec.Name })
		if at < 0 {
			at, h.Pools = len(h.Pools), append(h.Pools, spec)
		}
		h.Pools[at] = spec
		h.GPUs += spec.GPUs * int(spec.Max)
		h.NodeGPUs = max(h.NodeGPUs, spec.GPUs)
	}
	for _, n := range in.nodes {
		h.GPUs += n.GPUs
		h.NodeGPUs = max(h.NodeGPUs, n.GPUs)
	}
	h.GPUs = max(h.GPUs, len(v.GPUs))
	return h
}

// namedTypes are the types that jobs name that are not done.
func namedTypes(v *sched.View) map[sched.TypeID]bool {
	set := make(map[sched.TypeID]bool)
	for i := range v.Jobs {
		j := &v.Jobs[i]
		for t := range v.Types {
			if j.State != sched.Done && j.Spec.Types != 0 && j.Spec.Types.Has(sched.TypeID(t)) {
				set[sched.TypeID(t)] = true
			}
		}
	}
	return set
}

// joins are the nodes that v does not know and that a driver is going to report, in the order in which it does so: by
// name. Of those skipped it did not, though it should have.
func (in *inventory) joins(v *sched.View, skipped map[string]bool) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(in.nodes)) {
		known := slices.ContainsFunc(v.Nodes, func(n sched.Node) bool {
			return n.Spec.Name == name && n.State != sched.NodeGone
		})
		if !known && in.nodes[name].Joins && !skipped[name] {
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
		uuids = append(uuids, padded(in.nodes[name].UUIDs, in.nodes[name].GPUs)...)
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

// scored are the nodes for which profiles give scores.
func (in *inventory) scored() map[string]bool {
	nodes := make(map[string]bool)
	for name := range in.nodes {
		for _, uuid := range in.nodes[name].UUIDs {
			if known := in.profiles[uuid]; known != nil && len(known.Scores) > 0 {
				nodes[name] = true
			}
		}
	}
	return nodes
}

// scores are the PM scores of so many GPUs by number, which uuids names; nil where no profile names any. Of others
// nothing is known: they count as the median.
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
			if q, reported := in.profiles[uuids[g]].Scores[class]; reported {
				s.PM[c][g] = q.AsApproximateFloat64()
			}
		}
	}
	return s
}
