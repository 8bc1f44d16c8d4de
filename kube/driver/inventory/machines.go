package inventory

import (
	"fmt"
	"log/slog"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/devices"
	"github.com/trainyard/trainyard/sched"
)

// Options say what an Inventory works with.
type Options struct {
	Mode    v1alpha1.Mode
	Types   func(product string) (sched.TypeID, error) // the number of a product; the error says why it has none
	NewType func(product string)                       // is called with a product without a number that a node has
	Event   func(about client.Object, reason, text string)
	Log     *slog.Logger
}

// Inventory is what is known of the nodes of a cluster. It belongs to one goroutine.
type Inventory struct {
	o        Options
	machines map[string]*Machine                             // by name of the node
	nodeIDs  map[string]sched.NodeID                         // as they were found last
	slices   map[string]map[string]*resourcev1.ResourceSlice // by node, by name
	sliceOf  map[string]string                               // name of the node, by that of the slice
	places   map[devices.ID]string                           // name of the node that has a device
	numbers  numbers
}

// New returns an inventory that knows of nothing.
func New(o Options) *Inventory {
	return &Inventory{
		o: o, machines: make(map[string]*Machine), nodeIDs: make(map[string]sched.NodeID),
		slices:  make(map[string]map[string]*resourcev1.ResourceSlice),
		sliceOf: make(map[string]string), places: make(map[devices.ID]string),
	}
}

// StartLook is called before the looks of an instant.
func (in *Inventory) StartLook(v *sched.View) { in.numbers = numbersOf(v) }

// IsGone reports whether a node was there and is no more.
func (in *Inventory) IsGone(node string) bool {
	m := in.machines[node]
	return m != nil && m.Gone
}

// IsSilent reports whether a node does not answer, as far as is known.
func (in *Inventory) IsSilent(node string) bool {
	m := in.machines[node]
	return m == nil || m.Gone || !m.Ready
}

// IsCordoned reports whether a node is there and takes no new pods.
func (in *Inventory) IsCordoned(node string) bool {
	m := in.machines[node]
	return m != nil && m.Cordoned
}

// NodeOf returns the name of the node that has a device, "" if none is known.
func (in *Inventory) NodeOf(id devices.ID) string { return in.places[id] }

// NodeID returns the number of the node of a name, if the View has one that is there.
func (in *Inventory) NodeID(v *sched.View, name string) (sched.NodeID, bool) {
	is := func(id sched.NodeID) bool { return v.Nodes[id].Spec.Name == name && v.Nodes[id].Joined() }
	if id, ok := in.nodeIDs[name]; ok && int(id) < len(v.Nodes) && is(id) {
		return id, true
	}
	for id := range sched.NodeID(len(v.Nodes)) { // it has joined since
		if is(id) {
			in.nodeIDs[name] = id
			return id, true
		}
	}
	return sched.None, false
}

// Devices returns the devices that GPUs of a node are. The error names one that the node does not show, of which the
// UUID alone is returned.
func (in *Inventory) Devices(n *sched.Node, gpus []sched.GPUID) (list []*devices.Device, err error) {
	m := in.machines[n.Spec.Name]
	for _, id := range gpus {
		g := &devices.Device{UUID: strconv.Itoa(int(id - n.First))}
		if n.Spec.Devices != nil {
			g.UUID = n.Spec.Devices[id-n.First]
		}
		there := (*devices.Device)(nil)
		if m != nil {
			there = m.Find(g.UUID)
		}
		if there == nil {
			err = fmt.Errorf("GPU %s of node %s is not there any more", g.UUID, n.Spec.Name)
			there = g
		}
		list = append(list, there)
	}
	return list, err
}

// keep remembers what a node is, and where its devices are.
func (in *Inventory) keep(name string, m *Machine) {
	if was := in.machines[name]; was != nil {
		for i := range was.GPUs {
			delete(in.places, was.GPUs[i].ID)
		}
	}
	in.machines[name] = m
	for i := range m.GPUs {
		if m.GPUs[i].ID != (devices.ID{}) {
			in.places[m.GPUs[i].ID] = name
		}
	}
}
