package local

import (
	"slices"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/sched"
)

// Pools returns what may be rented of a machine whose devices are offered one by one: a pool for each type, in the
// order of types. A node of it is one device, is there at once, and costs nothing: what is limited is how many are
// rented on average.
func Pools(list []device.Device) (pools []sched.PoolSpec) {
	for t, name := range device.Types(list) {
		p := sched.PoolSpec{Name: name, Type: sched.TypeID(t), GPUs: 1}
		for i := range list {
			if list[i].Type == name {
				p.Max++
			}
		}
		pools = append(pools, p)
	}
	return pools
}

// lending offers devices one by one, those of a type being the nodes of a pool. Node i is device i, always: when the
// log starts all join, and leave again, so that each has its number.
type lending struct {
	on      bool
	wanted  []int32 // by pool: devices to be offered
	offered []bool  // by device
}

// introduce returns how the devices join and leave, from a time on, so that they have their numbers.
func (l *lending) introduce(nodes []sched.Event, at sched.Time) (events []sched.Event) {
	for i := range nodes {
		whole := nodes[i].NodeSpec
		for _, name := range whole.Devices {
			one := *whole
			one.Name, one.GPUs, one.Devices, one.Pool = whole.Name+"/"+name, 1, []string{name}, sched.PoolID(whole.Type)
			part := device.Machine{CPUs: whole.CPUs, MemoryGB: whole.MemoryGB}.Part(1, whole.GPUs)
			one.CPUs, one.MemoryGB = part.CPUs, part.MemoryGB
			events = append(events, sched.Event{Time: at, Kind: sched.NodeJoined, NodeSpec: &one})
		}
	}
	for i := range events {
		events = append(events, sched.Event{Time: at + 1, Kind: sched.NodeLeft, Node: sched.NodeID(i),
			Code: int32(sched.NodeGone)})
	}
	return events
}

// resume takes over what v shows.
func (l *lending) resume(v *sched.View, devices int) {
	l.offered = make([]bool, devices)
	for i := range v.Nodes {
		l.offered[i] = v.Nodes[i].Joined()
	}
	l.wanted = make([]int32, len(v.Pools))
	for i := range v.Pools {
		l.wanted[i] = v.Pools[i].Ordered
	}
}

// offer returns the devices that join now: so many as are wanted, of those that may be used the first.
func (d *Driver) offer() (events []sched.Event) {
	if !d.lending.on {
		return nil
	}
	short := slices.Clone(d.lending.wanted)
	for i, offered := range d.lending.offered {
		if offered {
			short[poolOf(d, i)]--
		}
	}
	for i, offered := range d.lending.offered {
		if pool := poolOf(d, i); !offered && short[pool] > 0 && d.dev.state[i] == sched.GPUInUse {
			short[pool]--
			d.lending.offered[i] = true
			spec := d.view.Nodes[i].Spec
			events = append(events, sched.Event{Kind: sched.NodeJoined, NodeSpec: &spec})
		}
	}
	return events
}

// poolOf returns the pool of device i.
func poolOf(d *Driver, i int) sched.PoolID { return d.view.Nodes[i].Spec.Pool }

// setNode answers the order to bring a node, which is a device that is offered, to a state.
func (d *Driver) setNode(a *sched.Action) {
	e := sched.Event{Kind: sched.NodeChanged, Node: a.Node, Code: int32(a.State)}
	if a.State == sched.NodeGone {
		e.Kind = sched.NodeLeft
		d.lending.offered[a.Node] = false
	}
	d.later = append(d.later, e)
}
