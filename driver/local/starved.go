package local

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/model/footprint"
	"github.com/trainyard/trainyard/sched"
)

// neighbours are jobs on devices, by name, and how much memory their processes have there, in GB.
type neighbours map[string]map[sched.JobID]float64

// on returns who is on those of some devices that attempts hold.
func (o *owners) on(s *device.Sample, names []string) neighbours {
	all := make(neighbours)
	for _, name := range names {
		if !o.holds(name) {
			continue
		}
		has := make(map[sched.JobID]float64)
		for _, p := range s.Readings[name].Processes {
			if job, ours := o.pids()[p.PID]; ours && p.MiB > 0 {
				has[job] += p.MiB / 1024
			}
		}
		all[name] = has
	}
	return all
}

// starved makes the failure of an attempt one that spends no retry where those next to it on a GPU have so much memory
// that its own figure no longer fits there: it may have failed for want of it. What they have is reported first, so
// that no system that goes by figures puts the job next to them again, and the one to blame can be asked why.
func starved(d *Driver, r *report) {
	e, j := &r.event, &d.view.Jobs[r.job]
	if e.Kind != sched.AttemptEnded || e.Outcome != sched.Failed || j.Live.Share != sched.Shared ||
		strings.HasPrefix(e.Text, task.Timeout) {
		return
	}
	own, stated := float64(d.o.peak(r.job)), float64(j.Spec.GPUMemGB)
	if stated > 0 && own > stated*footprint.Margin {
		return // it is beyond its own figure
	}
	for _, g := range j.GPUs {
		dev := &d.dev.list[g]
		has := r.others[dev.Name]
		all := max(own, stated)
		for _, gb := range has {
			all += gb
		}
		worst := greediest(d.view.Jobs, has, stated > 0)
		if worst == sched.None || dev.MemoryGB <= 0 || all <= float64(dev.MemoryGB) { // 0 = not known
			continue
		}
		e.Outcome = sched.NodeLost
		states := d.view.Jobs[worst].Spec.GPUMemGB
		e.Text = also(fmt.Sprintf("job %d next to it had %.4g GB of %s, and states %g: no room for its own %.4g GB",
			worst, has[worst], dev.Name, states, max(own, stated)), e.Text)
		for _, id := range slices.Sorted(maps.Keys(has)) {
			d.later = append(d.later, d.gauge.outgrown(id, float32(has[id])))
		}
		d.runs.remark(worst, fmt.Sprintf("it had %.4g GB of %s, which it shares, and states %g: job %d failed next to "+
			"it, and spends no retry", has[worst], dev.Name, states, r.job))
		return
	}
}

// greediest returns who, of jobs that have so much memory of a GPU, has most beyond what it states and is admitted to
// exceed that by; None if no one does. Of those that state nothing it is known only if silent.
func greediest(jobs []sched.Job, has map[sched.JobID]float64, silent bool) sched.JobID {
	worst, most := sched.JobID(sched.None), 0.0
	for id := range jobs {
		gb, stated := has[sched.JobID(id)], float64(jobs[id].Spec.GPUMemGB)
		if beyond := gb - stated; gb > stated*footprint.Margin && (stated > 0 || silent) && beyond > most {
			worst, most = sched.JobID(id), beyond
		}
	}
	return worst
}
