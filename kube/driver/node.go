package driver

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// lookAtSlice keeps a ResourceSlice and looks at the nodes that it was of and is of.
func (d *Driver) lookAtSlice(name string) error {
	var s resourcev1.ResourceSlice
	found, err := d.get(types.NamespacedName{Name: name}, &s)
	if err != nil {
		return err
	}
	now := ""
	if found && s.Spec.NodeName != nil {
		now = *s.Spec.NodeName
	}
	if was := d.sliceOf[name]; was != "" && was != now {
		delete(d.slices[was], name)
		d.again(observer.KeyOfNode(was))
	}
	delete(d.sliceOf, name)
	if now == "" { // gone, or of devices that are not in a node
		return nil
	}
	d.sliceOf[name] = now
	if d.slices[now] == nil {
		d.slices[now] = make(map[string]*resourcev1.ResourceSlice)
	}
	d.slices[now][name] = &s
	d.again(observer.KeyOfNode(now))
	return nil
}

// lookAtNode tells how a node has changed, and what of it is of concern to attempts.
func (d *Driver) lookAtNode(name string) error {
	var node corev1.Node
	found, err := d.get(types.NamespacedName{Name: name}, &node)
	if err != nil {
		return err
	}
	was := d.machines[name]
	id, known := d.nodeID(name)
	if !found && known && (was == nil || !was.gone) {
		if found, err = d.ask(types.NamespacedName{Name: name}, &node); err != nil {
			return err
		}
	}
	var m *machine
	if found {
		if m, err = d.surveyed(&node); err != nil {
			return err
		}
	}
	switch {
	case m == nil || was != nil && was.uid != m.uid: // the first must have left before another of its name may join
		m = &machine{gone: true}
		if was != nil {
			m.uid = was.uid
		}
	case m.unsure && was != nil:
		m.gpus, m.product, m.memGiB = was.gpus, was.product, was.memGiB
	}
	d.keep(name, m)
	switch {
	case known && m.gone:
		d.lostNode(id)
	case known:
		d.changedNode(id, m, &node)
	case m.gone:
		delete(d.machines, name)
		if found {
			d.again(observer.KeyOfNode(name))
		}
	case m.joins():
		d.join(m, &node)
	}
	return nil
}

func (d *Driver) surveyed(node *corev1.Node) (*machine, error) {
	var profile *v1alpha1.GPUProfile
	var p v1alpha1.GPUProfile
	if found, err := d.get(types.NamespacedName{Name: node.Name}, &p); err != nil {
		return nil, err
	} else if found {
		profile = &p
	}
	list := make([]*resourcev1.ResourceSlice, 0, len(d.slices[node.Name]))
	for _, s := range d.slices[node.Name] {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	return survey(node, list, profile, d.o.Mode), nil
}

// keep remembers what a node is, and where its devices are.
func (d *Driver) keep(name string, m *machine) {
	if was := d.machines[name]; was != nil {
		for i := range was.gpus {
			delete(d.places, was.gpus[i].id)
		}
	}
	d.machines[name] = m
	for i := range m.gpus {
		if m.gpus[i].id != (deviceID{}) {
			d.places[m.gpus[i].id] = name
		}
	}
}

// nodeID returns the number of the node of a name, if the View has one that is there.
func (d *Driver) nodeID(name string) (sched.NodeID, bool) {
	if id, ok := d.nodeIDs[name]; ok && int(id) < len(d.view.Nodes) {
		if n := &d.view.Nodes[id]; n.Spec.Name == name && n.Joined() {
			return id, true
		}
	}
	for i := range d.view.Nodes { // it has joined since
		if n := &d.view.Nodes[i]; n.Spec.Name == name && n.Joined() {
			d.nodeIDs[name] = sched.NodeID(i)
			return sched.NodeID(i), true
		}
	}
	return sched.None, false
}

// lostNode tells that a node is gone, once no attempt is on it: until then its GPUs are missing.
func (d *Driver) lostNode(id sched.NodeID) {
	n := &d.view.Nodes[id]
	if n.Busy == 0 {
		d.tell(sched.Event{Kind: sched.NodeLeft, Node: id, Code: int32(sched.NodeGone)})
		if p := d.view.PoolOf(n); p != nil { // if it is deleted, that may have been what it waits for
			d.again(observer.KeyOfPool(p.Spec.Name))
			if n.Target == sched.NodeGone && d.o.Provider != nil { // with it one fewer was asked for, be another wanted in its place or not
				d.rent(&sched.Action{Kind: sched.Rent, Pool: n.Spec.Pool, Count: p.Ordered})
			}
		}
		d.again(observer.KeyOfNode(n.Spec.Name)) // perhaps there is another by that name
		return
	}
	for i := range n.Spec.GPUs {
		d.tellGPU(n.First+sched.GPUID(i), sched.GPUMissing)
	}
	d.againJobsOn(id)
}

// againJobsOn looks again at the jobs with attempts on a node.
func (d *Driver) againJobsOn(id sched.NodeID) {
	for _, a := range d.attempts {
		if slices.ContainsFunc(a.ranks, func(r rank) bool { return r.node == id }) {
			d.again(observer.KeyOfJob(a.key))
		}
	}
}

// changedNode tells what is new about a node that is there.
func (d *Driver) changedNode(id sched.NodeID, m *machine, node *corev1.Node) {
	n := &d.view.Nodes[id]
	d.mindType(n)
	if n.Busy == 0 && !m.unsure && m.ready && !m.cordoned && d.replaced(n, m) {
		d.tell(sched.Event{Kind: sched.NodeLeft, Node: id, Code: int32(sched.NodeDown)})
		d.join(m, node)
		return
	}
	switch {
	case m.cordoned && n.State == sched.NodeUp:
		d.tell(sched.Event{Kind: sched.NodeChanged, Node: id, Code: int32(sched.NodeDraining)})
	case !m.cordoned && n.State != sched.NodeUp:
		d.tell(sched.Event{Kind: sched.NodeChanged, Node: id, Code: int32(sched.NodeUp)})
	}
	for i := range n.Spec.GPUs {
		d.tellGPU(n.First+sched.GPUID(i), d.stateOf(&n.Spec, i, m))
	}
}

// replaced reports whether a machine has GPUs that the View's node does not know.
func (d *Driver) replaced(n *sched.Node, m *machine) bool {
	if n.Spec.Devices == nil {
		return len(m.gpus) > n.Spec.GPUs
	}
	return slices.ContainsFunc(m.gpus, func(g gpu) bool { return !slices.Contains(n.Spec.Devices, g.uuid) })
}

// join tells that a node is there, and of those of its GPUs that are not to be used at once.
func (d *Driver) join(m *machine, node *corev1.Node) {
	if slices.Contains(d.newPools, node.Labels[v1alpha1.LabelPool]) { // an instant's nodes are folded before its pools
		d.again(observer.KeyOfNode(node.Name))
		return
	}
	spec, err := d.nodeSpec(m, node)
	if err != nil {
		d.o.Log.Warn("a node is left out", "node", node.Name, "error", err)
		return
	}
	d.tell(sched.Event{Kind: sched.NodeJoined, NodeSpec: spec})
	first := d.firstOf(spec)
	for i := range spec.GPUs {
		if s := d.stateOf(spec, i, m); s != sched.GPUInUse {
			d.tell(sched.Event{Kind: sched.GPUChanged, Value: float64(first) + float64(i), Code: int32(s)})
		}
	}
	d.again(observer.KeyOfNode(node.Name)) // what was told of its GPUs is put right if they have other numbers
}

func (d *Driver) nodeSpec(m *machine, node *corev1.Node) (*sched.NodeSpec, error) {
	t, err := d.o.Types(m.product)
	if err != nil {
		d.o.NewType(m.product)
		return nil, err
	}
	spec := &sched.NodeSpec{Name: node.Name, GPUs: len(m.gpus), Type: t, Pool: d.poolOf(node), GPUMemGB: m.memGiB, Devices: m.uuids(),
		CPUs: float32(node.Status.Allocatable.Cpu().AsApproximateFloat64()), MemoryGB: gib(node.Status.Allocatable.Memory().Value())}
	var p v1alpha1.GPUProfile
	if found, err := d.get(types.NamespacedName{Name: node.Name}, &p); err != nil {
		return nil, err
	} else if found {
		spec.IdleW, spec.BusyGPUW = sched.Watts(p.Spec.IdleWatts), sched.Watts(p.Spec.BusyGPUWatts)
	}
	return spec, spec.Validate()
}

// firstOf returns the number that the first GPU of a node about to join is going to have: that of its slot if it was there before,
// else of the first slot of its size that is free, else the next. Nodes that leave at this instant are not counted: a
// guess that is wrong is put right by the next look.
func (d *Driver) firstOf(spec *sched.NodeSpec) sched.GPUID {
	fits := func(n *sched.Node) bool { return n.Spec.GPUs == spec.GPUs && !d.taken[n.First] }
	first := d.nextGPU
	old := slices.IndexFunc(d.view.Nodes, func(n sched.Node) bool { return n.Spec.Name == spec.Name && fits(&n) })
	if old < 0 {
		old = slices.IndexFunc(d.view.Nodes, func(n sched.Node) bool { return n.State == sched.NodeGone && fits(&n) })
	}
	if old >= 0 {
		first = d.view.Nodes[old].First
	} else {
		d.nextGPU += sched.GPUID(spec.GPUs)
	}
	d.taken[first] = true
	return first
}

// stateOf returns the state of GPU i of a node.
func (d *Driver) stateOf(spec *sched.NodeSpec, i int, m *machine) sched.GPUState {
	var g *gpu
	if spec.Devices != nil {
		g = m.find(spec.Devices[i])
	} else if i < len(m.gpus) {
		g = &m.gpus[i]
	}
	switch {
	case g == nil:
		return sched.GPUMissing
	case d.isForeign(g.id):
		return sched.GPUForeign
	case !m.ready || g.tainted:
		return sched.GPUStuck
	case m.withheld[g.uuid]:
		return sched.GPUWithheld
	}
	return sched.GPUInUse
}

// tellGPU tells the state of a GPU, if it is news.
func (d *Driver) tellGPU(g sched.GPUID, s sched.GPUState) {
	if d.view.GPUs[g].State != s {
		d.tell(sched.Event{Kind: sched.GPUChanged, Value: float64(g), Code: int32(s)})
	}
}
