package local

import (
	"errors"
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/sched"
)

// admit takes those of the devices that are new on the list: they get the numbers after the last one. It is durable
// before an event says so, so that the list is never shorter than the log. Devices of a type that the log does not know
// are not used, and none that is new is where devices are rented: their numbers are those of nodes.
func (w *deviceWatch) admit(found []device.Device) error {
	fresh := slices.DeleteFunc(device.Grouped(found), func(x device.Device) bool {
		return has(w.list, x.Name) || !w.takes(&x)
	})
	if len(fresh) == 0 {
		return nil
	}
	list := slices.Concat(w.list, fresh)
	if err := w.folder.Save(inventoryName, list); err != nil {
		return err
	}
	w.list = list
	w.watch.Join(fresh)
	w.state = slices.Concat(w.state, make([]sched.GPUState, len(fresh)))
	w.withheld = slices.Concat(w.withheld, make([]bool, len(fresh)))
	w.retired = slices.Concat(w.retired, make([]bool, len(fresh)))
	w.heldIdle = slices.Concat(w.heldIdle, make([]bool, len(fresh)))
	return nil
}

// takes reports whether a new device may be used. If not, users are warned of it, once.
func (w *deviceWatch) takes(x *device.Device) bool {
	known := w.o.Types
	if known == nil {
		known = device.Types(w.list)
	}
	why := ""
	switch {
	case w.refused[x.Name]:
		return false
	case w.o.Offer:
		why = "this folder rents by --budget, whose devices are those it was started with"
	case !slices.Contains(known, x.Type):
		why = fmt.Sprintf("it is of type %q, and the log of this folder knows %q alone", x.Type, known)
	default:
		return true
	}
	w.refused[x.Name] = true
	w.log.Warn("a device is new and not used: serve another folder by --state to use it", "device", x.Name, "why", why)
	return false
}

// newcomers returns the nodes of the devices that are new among those found. They may be given to jobs at once.
func (w *deviceWatch) newcomers(found []device.Device) []sched.Event {
	from := len(w.list)
	if err := w.admit(found); err != nil {
		w.log.Warn("new devices are not used so far", "error", err)
		return nil
	}
	events, err := w.nodes(from)
	if err != nil { // admit takes known types alone
		w.log.Warn("new devices are not used", "error", err)
	}
	for i := range events {
		w.log.Warn("new devices are used from now on", "devices", events[i].NodeSpec.Devices)
	}
	return events
}

// nodes returns the devices from a number on as nodes, each a run of those of one type: the GPUs of a node are alike,
// and their numbers have no gaps. Those that came later than the log started are nodes of their own.
func (w *deviceWatch) nodes(from int) (events []sched.Event, err error) {
	known, types := w.o.Types, device.Types(w.list)
	if known == nil {
		known = types
	}
	for first := from; first < len(w.list); {
		kind := w.list[first].Type
		spec := &sched.NodeSpec{Name: w.o.Node, Pool: sched.None, Type: sched.TypeID(slices.Index(known, kind)),
			GPUMemGB: w.list[first].MemoryGB}
		if !slices.Contains(known, kind) || spec.Type >= sched.MaxGPUTypes {
			return nil, fmt.Errorf("local: device %s of type %q, want one of the %d types of the log",
				w.list[first].Name, kind, len(known))
		}
		if len(types) > 1 {
			spec.Name += "/" + kind
		}
		if slices.ContainsFunc(w.list[:first], func(x device.Device) bool { return x.Type == kind }) {
			spec.Name += fmt.Sprintf("+%d", first)
		}
		for ; first < len(w.list) && w.list[first].Type == kind; first++ {
			spec.GPUs++
			spec.Devices = append(spec.Devices, w.list[first].Name)
			spec.GPUMemGB = min(spec.GPUMemGB, w.list[first].MemoryGB)
		}
		part := w.o.Machine.Part(spec.GPUs, len(w.list))
		spec.CPUs, spec.MemoryGB = part.CPUs, part.MemoryGB
		events = append(events, sched.Event{Kind: sched.NodeJoined, NodeSpec: spec})
	}
	return events, nil
}

// ErrInUse says that a GPU is not forgotten: it is there, or a job holds it.
var ErrInUse = errors.New("in use")

// Forget has GPUs that are missing count no more, all of them or none: nothing waits for them. One that is found again
// is used again. It returns the events that say so, dated by the caller; ErrInUse if one is there, or a job holds it
// still. It belongs to the engine's goroutine, between two answers.
func (d *Driver) Forget(gpus []sched.GPUID) ([]sched.Event, error) {
	w := d.dev
	for _, g := range gpus {
		if g < 0 || int(g) >= len(w.list) {
			return nil, fmt.Errorf("local: GPU %d, want one of %d", g, len(w.list))
		}
		name := w.list[g].Name
		if x := &d.view.GPUs[g]; x.Holders > 0 || x.Targets > 0 {
			return nil, fmt.Errorf("%s: %w: %s", name, ErrInUse, holdersText(d.view, g))
		}
		if w.watch.Of(int(g)).State != sched.GPUMissing {
			return nil, fmt.Errorf("%s: %w: it is there, and only one that is missing is forgotten; `trainyard drain "+
				"%s` has it left alone", name, ErrInUse, name)
		}
	}
	for _, g := range gpus {
		w.retired[g], w.withheld[g] = true, false
	}
	return w.changes(), nil
}

// holdersText names a job that holds a GPU, or is to.
func holdersText(v *sched.View, g sched.GPUID) string {
	for id := range v.Jobs {
		if j := &v.Jobs[id]; j.HoldsDevices() && slices.Contains(j.GPUs, g) || slices.Contains(j.Target, g) {
			return fmt.Sprintf("job %d holds it", id)
		}
	}
	return "a job holds it"
}
