package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	driverinventory "github.com/trainyard/trainyard/kube/driver/inventory"
	driverobserver "github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// findAgain puts nodes that are lost back into a cluster: those that jobs hold GPUs of, which would start again
// otherwise. Others join as if they were new. Which GPU has which place the statuses of jobs say; all others follow in
// the order in which the node shows them. What was held against GPUs is forgotten.
func (c *Controller) findAgain(ctx context.Context, l *loaded, cl *record.Cluster) error {
	if l.lost == "" {
		return nil
	}
	missing := missingOf(l.jobs, cl)
	if len(missing) == 0 {
		return nil
	}
	var nodes corev1.NodeList
	if err := c.o.Reader.List(ctx, &nodes); err != nil {
		return fmt.Errorf("controller: nodes: %w", err)
	}
	shown, err := driverinventory.Survey(ctx, c.o.Reader, nodes.Items, l.policy.Spec.Mode)
	if err != nil {
		return fmt.Errorf("controller: nodes: %w", err)
	}
	places, err := c.places(ctx)
	if err != nil {
		return err
	}
	live := make(map[string]*corev1.Node, len(nodes.Items))
	for i := range nodes.Items {
		live[nodes.Items[i].Name] = &nodes.Items[i]
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		spec := specOf(live[name], shown[name], places[name], cl)
		if spec == nil || missing[name] >= spec.GPUs {
			c.o.Log.Warn("a node of jobs is not found again: they start again", "node", name)
			continue
		}
		cl.Nodes = append(cl.Nodes, sched.Node{Spec: *spec, First: sched.GPUID(len(cl.GPUs)), Generation: 1,
			Since: sched.Time(l.policy.Status.Now)})
		cl.GPUs = append(cl.GPUs, make([]record.GPU, spec.GPUs)...)
		c.o.Log.Warn("a node that was lost is found again", "node", name, "gpus", spec.GPUs)
	}
	return nil
}

// missingOf returns the nodes on which jobs hold GPUs and that a cluster lacks, each with the highest place of these.
func missingOf(jobs []record.Job, cl *record.Cluster) map[string]int {
	missing := make(map[string]int)
	for i := range jobs {
		for _, name := range slices.Concat(jobs[i].GPUs, jobs[i].Target) {
			node, index, _ := strings.Cut(name, "/")
			if k, err := strconv.Atoi(index); err == nil {
				missing[node] = max(missing[node], k)
			}
		}
	}
	for i := range cl.Nodes {
		if cl.Nodes[i].State != sched.NodeGone {
			delete(missing, cl.Nodes[i].Spec.Name)
		}
	}
	return missing
}

// places returns by node and place the UUIDs of GPUs that the statuses of jobs name; "" where two say otherwise.
func (c *Controller) places(ctx context.Context) (map[string]map[int]string, error) {
	of := make(map[string]map[int]string)
	err := driverobserver.EachPage(ctx, c.o.Reader, func(page *v1alpha1.TrainingJobList) error {
		for i := range page.Items {
			for _, a := range page.Items[i].Status.Allocation {
				k, bad := strconv.Atoi(a.Device)
				if bad != nil || a.UUID == "" {
					continue
				}
				if of[a.Node] == nil {
					of[a.Node] = make(map[int]string)
				}
				if was, known := of[a.Node][k]; known && was != a.UUID {
					a.UUID = ""
				}
				of[a.Node][k] = a.UUID
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("controller: jobs: %w", err)
	}
	return of, nil
}

// specOf returns what a node is, from what it shows and the places of its GPUs; nil: it is not there, or they do not
// go together. It gives a type of GPU that the cluster does not know a number.
func specOf(node *corev1.Node, shown driverinventory.Shown, places map[int]string, cl *record.Cluster) *sched.NodeSpec {
	if node == nil || shown.GPUs == 0 {
		return nil
	}
	pool := sched.PoolID(sched.None)
	if name := node.Labels[v1alpha1.LabelPool]; name != "" {
		at := slices.IndexFunc(cl.Pools, func(p sched.Pool) bool { return p.Spec.Name == name })
		if at < 0 { // no one knows what is paid for it
			return nil
		}
		pool = sched.PoolID(at)
	}
	uuids, ok := placed(shown.UUIDs, places)
	if !ok {
		return nil
	}
	t := slices.Index(cl.Types, shown.Product)
	if t < 0 {
		t, cl.Types = len(cl.Types), append(cl.Types, shown.Product)
	}
	spec := shown.Spec(node, sched.TypeID(t), pool)
	spec.Devices = uuids
	if spec.Validate() != nil {
		return nil
	}
	return spec
}

// placed returns UUIDs in their places: those of which it is known where they are, and the others in the order of list
// in the places that are left. ok is false if one has no place, or two have.
func placed(list []string, places map[int]string) (uuids []string, ok bool) {
	if list == nil {
		return nil, true
	}
	uuids, rest := make([]string, len(list)), slices.Clone(list)
	for k, uuid := range places {
		at := slices.Index(rest, uuid)
		if k < 0 || k >= len(uuids) || at < 0 {
			return nil, false
		}
		uuids[k], rest = uuid, slices.Delete(rest, at, at+1)
	}
	for k := range uuids {
		if uuids[k] == "" {
			uuids[k], rest = rest[0], rest[1:]
		}
	}
	return uuids, true
}
