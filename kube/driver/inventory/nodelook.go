package inventory

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/devices"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// Around is what a look at a node needs to know besides the node.
type Around struct {
	View     *sched.View
	Foreign  func(devices.ID) bool                // others use the device, or two claims have it
	Pool     func(node *corev1.Node) sched.PoolID // that the node is rented from; None: it is owned
	NewPools []string                             // of this instant: the engine has yet to number them
}

// Seen is what a look at a node found.
type Seen struct {
	observer.Found
	Node sched.NodeID // its number; None: the View knows no node of its name
	Gone bool         // it is not in the cluster any more
}

// LookAtSlice keeps a ResourceSlice and has the nodes looked at that it was of and is of.
func (in *Inventory) LookAtSlice(ctx context.Context, api observer.API, name string) (f observer.Found, err error) {
	var s resourcev1.ResourceSlice
	found, err := api.Get(ctx, types.NamespacedName{Name: name}, &s)
	if err != nil {
		return f, err
	}
	now := ""
	if found && s.Spec.NodeName != nil {
		now = *s.Spec.NodeName
	}
	if was := in.sliceOf[name]; was != "" && was != now {
		delete(in.slices[was], name)
		f.LookAgain(observer.KeyOfNode(was))
	}
	delete(in.sliceOf, name)
	if now == "" { // gone, or of devices that are not in a node
		return f, nil
	}
	in.sliceOf[name] = now
	if in.slices[now] == nil {
		in.slices[now] = make(map[string]*resourcev1.ResourceSlice)
	}
	in.slices[now][name] = &s
	f.LookAgain(observer.KeyOfNode(now))
	return f, nil
}

// LookAtNode reports how a node has changed.
func (in *Inventory) LookAtNode(ctx context.Context, api observer.API, name string, a Around) (Seen, error) {
	id, known := in.NodeID(a.View, name)
	l := look{ctx: ctx, api: api, in: in, Around: a, seen: Seen{Node: id}}
	found, err := l.read(name, known)
	if err != nil {
		return l.seen, err
	}
	m, err := l.machine(name, found)
	if err != nil {
		return l.seen, err
	}
	if was := in.machines[name]; m.odd != "" && (was == nil || was.odd != m.odd) {
		in.o.Log.Warn("GPUs of a node cannot be used", "node", name, "why", m.odd)
		in.o.Event(&l.node, "OddGPUs", m.odd)
	}
	in.keep(name, m)
	switch l.seen.Gone = m.Gone; {
	case known && m.Gone:
		l.lost(&a.View.Nodes[id])
	case known:
		l.changed(&a.View.Nodes[id], m)
	case m.Gone:
		delete(in.machines, name)
		if found {
			l.seen.LookAgain(observer.KeyOfNode(name))
		}
	case m.joins():
		l.join(m)
	}
	return l.seen, nil
}

// look is a look at a node under way.
type look struct {
	Around

	ctx  context.Context
	api  observer.API
	in   *Inventory
	node corev1.Node
	seen Seen
}

// read reads the node. The API server itself is asked for one that should be there.
func (l *look) read(name string, known bool) (found bool, err error) {
	key := types.NamespacedName{Name: name}
	found, err = l.api.Get(l.ctx, key, &l.node)
	if err == nil && !found && known && !l.in.IsGone(name) {
		found, err = l.api.Ask(l.ctx, key, &l.node)
	}
	return found, err
}

// machine returns what the node is now.
func (l *look) machine(name string, found bool) (m *Machine, err error) {
	if found {
		if m, err = l.survey(); err != nil {
			return nil, err
		}
	}
	was := l.in.machines[name]
	switch {
	case m == nil, was != nil && was.UID != m.UID: // the first must have left before another of its name may join
		m = &Machine{Gone: true}
		if was != nil {
			m.UID = was.UID
		}
	case m.unsure && was != nil:
		m.GPUs, m.Product, m.MemGiB = was.GPUs, was.Product, was.MemGiB
	}
	return m, nil
}

// survey returns what the node shows of itself.
func (l *look) survey() (*Machine, error) {
	p, err := l.profile()
	if err != nil {
		return nil, err
	}
	list := make([]*resourcev1.ResourceSlice, 0, len(l.in.slices[l.node.Name]))
	for _, s := range l.in.slices[l.node.Name] {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	return survey(&l.node, list, p, l.in.o.Mode), nil
}

// profile returns the GPUProfile of the node, nil if it has none.
func (l *look) profile() (*v1alpha1.GPUProfile, error) {
	p := new(v1alpha1.GPUProfile)
	found, err := l.api.Get(l.ctx, types.NamespacedName{Name: l.node.Name}, p)
	if !found || err != nil {
		return nil, err
	}
	return p, nil
}

// lost reports that a node is gone, once no attempt is on it: until then its GPUs are missing.
func (l *look) lost(n *sched.Node) {
	if n.Busy == 0 {
		l.seen.Report(sched.Event{Kind: sched.NodeLeft, Node: l.seen.Node, Code: int32(sched.NodeGone)})
		l.seen.LookAgain(observer.KeyOfNode(n.Spec.Name)) // perhaps there is another by that name
		return
	}
	for i := range n.Spec.GPUs {
		l.reportGPU(n.First+sched.GPUID(i), sched.GPUMissing)
	}
}

// changed reports what is new about a node that is there.
func (l *look) changed(n *sched.Node, m *Machine) {
	if n.Busy == 0 && !m.unsure && m.Ready && !m.Cordoned && replaced(n, m) {
		l.seen.Report(sched.Event{Kind: sched.NodeLeft, Node: l.seen.Node, Code: int32(sched.NodeDown)})
		l.join(m)
		return
	}
	switch {
	case m.Cordoned && n.State == sched.NodeUp:
		l.seen.Report(sched.Event{Kind: sched.NodeChanged, Node: l.seen.Node, Code: int32(sched.NodeDraining)})
	case !m.Cordoned && n.State != sched.NodeUp:
		l.seen.Report(sched.Event{Kind: sched.NodeChanged, Node: l.seen.Node, Code: int32(sched.NodeUp)})
	}
	for i := range n.Spec.GPUs {
		l.reportGPU(n.First+sched.GPUID(i), l.stateOf(&n.Spec, i, m))
	}
}

// replaced reports whether a machine has GPUs that the View's node does not know.
func replaced(n *sched.Node, m *Machine) bool {
	if n.Spec.Devices == nil {
		return len(m.GPUs) > n.Spec.GPUs
	}
	return slices.ContainsFunc(m.GPUs, func(g devices.Device) bool { return !slices.Contains(n.Spec.Devices, g.UUID) })
}

// join reports that a node is there, and which of its GPUs are not to be used at once.
func (l *look) join(m *Machine) {
	// The engine folds the nodes of an instant before its pools.
	if slices.Contains(l.NewPools, l.node.Labels[v1alpha1.LabelPool]) {
		l.seen.LookAgain(observer.KeyOfNode(l.node.Name))
		return
	}
	spec, err := l.spec(m)
	if err != nil {
		l.in.o.Log.Warn("a node is left out", "node", l.node.Name, "error", err)
		return
	}
	l.seen.Report(sched.Event{Kind: sched.NodeJoined, NodeSpec: spec})
	first := l.in.numbers.first(spec)
	for i := range spec.GPUs {
		if s := l.stateOf(spec, i, m); s != sched.GPUInUse {
			e := sched.Event{Kind: sched.GPUChanged, Value: float64(first) + float64(i), Code: int32(s)}
			l.seen.Report(e)
		}
	}
	l.seen.LookAgain(observer.KeyOfNode(l.node.Name)) // puts right what was reported if its GPUs have other numbers
}

// spec returns what the engine knows of the node.
func (l *look) spec(m *Machine) (*sched.NodeSpec, error) {
	t, err := l.in.o.Types(m.Product)
	if err != nil {
		l.in.o.NewType(m.Product)
		return nil, err
	}
	shown := Shown{GPUs: len(m.GPUs), UUIDs: m.uuids(), MemGiB: m.MemGiB}
	spec := shown.Spec(&l.node, t, l.Pool(&l.node))
	p, err := l.profile()
	if err != nil {
		return nil, err
	}
	if p != nil {
		spec.IdleW, spec.BusyGPUW = sched.Watts(p.Spec.IdleWatts), sched.Watts(p.Spec.BusyGPUWatts)
	}
	return spec, spec.Validate()
}

// stateOf returns the state of GPU i of a node.
func (l *look) stateOf(spec *sched.NodeSpec, i int, m *Machine) sched.GPUState {
	var g *devices.Device
	if spec.Devices != nil {
		g = m.Find(spec.Devices[i])
	} else if i < len(m.GPUs) {
		g = &m.GPUs[i]
	}
	switch {
	case g == nil:
		return sched.GPUMissing
	case l.Foreign(g.ID):
		return sched.GPUForeign
	case !m.Ready || g.Tainted:
		return sched.GPUStuck
	case m.withheld[g.UUID]:
		return sched.GPUWithheld
	}
	return sched.GPUInUse
}

// reportGPU reports the state of a GPU, if it is news.
func (l *look) reportGPU(g sched.GPUID, s sched.GPUState) {
	if l.View.GPUs[g].State != s {
		l.seen.Report(sched.Event{Kind: sched.GPUChanged, Value: float64(g), Code: int32(s)})
	}
}
