package local

import (
	"slices"
	"sync"

	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// owners are the attempts that live, to be asked whose a process or a device is. Who belongs to them is found out when
// the first asks.
type owners struct {
	orders []*shim.Order
	pids   func() map[int]sched.JobID
}

// owners returns the attempts that live, all but one. It may be called by anybody.
func (d *Driver) owners(but *attempt) *owners {
	o := &owners{}
	for _, a := range d.runs.others(but) {
		o.orders = append(o.orders, a.order)
	}
	o.pids = sync.OnceValue(func() map[int]sched.JobID { return d.members(o.orders) })
	return o
}

// members returns the processes of attempts, with their jobs: of their cgroups, what carries their cookie, and what
// descends from those.
func (d *Driver) members(orders []*shim.Order) map[int]sched.JobID {
	ours := make(map[int]sched.JobID)
	for _, o := range orders {
		pids, err := procs.Open(o.Cgroup, o.GroupName(), o.Cookie()).Members()
		if err != nil {
			d.o.Log.Warn("cannot list the processes of an attempt", "job", o.Job, "error", err)
		}
		for _, pid := range pids {
			ours[pid] = sched.JobID(o.Job)
		}
	}
	return ours
}

func (o *owners) owns(pid int) bool { _, ours := o.pids()[pid]; return ours }

func (o *owners) holds(name string) bool {
	return slices.ContainsFunc(o.orders, func(x *shim.Order) bool { return slices.Contains(x.Devices, name) })
}

// gone reports whether there is no such process.
func gone(pid int) bool {
	_, err := procs.StartTime(pid)
	return err != nil
}
