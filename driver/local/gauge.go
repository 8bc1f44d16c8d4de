package local

import (
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/sched"
)

// gauge makes events of samples: what the GPUs of each node draw and how much they are used, and the same of each job.
// The power of a node is that of its GPUs: what else the machine draws is not seen. What is about the same as it was
// reported last is not reported again, so that the log of an idle machine does not grow.
type gauge struct {
	every time.Duration
	meter device.Meter
	last  time.Time
	nodes map[sched.NodeID]sched.Event // as last reported
	jobs  map[sched.JobID]sched.Event
	hold  map[sched.JobID]hold // at the last sample, of jobs that are up
}

// hold is how a job holds its GPUs.
type hold struct {
	attempt, holders int32 // holders of all of them: as many as there are where it is alone
	samples          int   // so many in a row show it so
	whole            bool  // it was so when means were last taken
}

// read folds a sample and returns what is to be reported.
func (g *gauge) read(v *sched.View, list []device.Device, s *device.Sample, o *owners) (events []sched.Event) {
	g.meter.See(s)
	g.follow(v)
	if g.last.IsZero() {
		g.last = s.At
	}
	if s.At.Sub(g.last) < g.every || len(v.Nodes) == 0 {
		return nil
	}
	g.last = s.At
	means := g.meter.Take()
	if g.nodes == nil {
		g.nodes, g.jobs = make(map[sched.NodeID]sched.Event), make(map[sched.JobID]sched.Event)
	}
	for n := range v.Nodes {
		id := sched.NodeID(n)
		if e := measureNode(v, list, id, means); !alike(e, g.nodes[id]) {
			g.nodes[id] = e
			events = append(events, e)
		}
	}
	for id := range v.Jobs {
		id := sched.JobID(id)
		h, up := g.hold[id]
		if !up {
			delete(g.jobs, id)
			continue
		}
		if h.samples == 1 { // the sample may be of the moment before
			continue
		}
		of := means
		if !h.whole {
			of = latest(s)
		}
		h.whole = true
		g.hold[id] = h
		if e := measureJob(v, list, id, of, s, o); !alike(e, g.jobs[id]) {
			g.jobs[id] = e
			events = append(events, e)
		}
	}
	return events
}

// follow notes how jobs hold their GPUs as of a sample. What was measured while they held them otherwise, or others had
// them, is not theirs.
func (g *gauge) follow(v *sched.View) {
	if g.hold == nil {
		g.hold = make(map[sched.JobID]hold)
	}
	for id := range v.Jobs {
		j, id := &v.Jobs[id], sched.JobID(id)
		if !j.Up || !j.HoldsDevices() {
			delete(g.hold, id)
			continue
		}
		now, was := hold{attempt: j.Attempts}, g.hold[id]
		for _, x := range j.GPUs {
			now.holders += int32(v.GPUs[x].Holders)
		}
		if now.attempt == was.attempt && now.holders == was.holders {
			now.samples, now.whole = was.samples, was.whole
		}
		now.samples++
		g.hold[id] = now
	}
}

// latest returns what a sample shows in place of means.
func latest(s *device.Sample) map[string]device.Mean {
	means := make(map[string]device.Mean, len(s.Readings))
	for name, r := range s.Readings {
		means[name] = device.Mean{Watts: r.Watts, Use: r.Use, MiB: r.UsedMiB}
	}
	return means
}

// outgrown returns what was reported last of a job, with the memory that it was seen to have since.
func (g *gauge) outgrown(id sched.JobID, gb float32) sched.Event {
	e := g.jobs[id]
	e.Kind, e.Node, e.Job, e.MemGB = sched.Measured, sched.None, id, max(e.MemGB, gb)
	if g.jobs != nil {
		g.jobs[id] = e
	}
	return e
}

// measureNode returns what the GPUs of a node draw, and the use of those that jobs hold.
func measureNode(v *sched.View, list []device.Device, n sched.NodeID, means map[string]device.Mean) sched.Event {
	node := &v.Nodes[n]
	var all, busy []string
	for i := range node.Spec.GPUs {
		g := node.First + sched.GPUID(i)
		all = append(all, list[g].Name)
		if v.GPUs[g].Holders > 0 {
			busy = append(busy, list[g].Name)
		}
	}
	use, _ := device.Use(means, busy)
	_, mem := device.Use(means, all)
	return sched.Event{Kind: sched.Measured, Node: n, Job: sched.None, Value: float64(device.Power(means, all)),
		Rate: use, MemGB: mem}
}

// measureJob returns what the GPUs of a job draw, if it has them alone, their use, and the most memory it has on one.
func measureJob(v *sched.View, list []device.Device, id sched.JobID, means map[string]device.Mean, s *device.Sample,
	o *owners) sched.Event {
	j := &v.Jobs[id]
	e := sched.Event{Kind: sched.Measured, Node: sched.None, Job: id}
	alone, named := true, true
	names := make([]string, len(j.GPUs))
	for i, g := range j.GPUs {
		names[i] = list[g].Name
		alone = alone && v.GPUs[g].Holders == 1
		r := s.Readings[names[i]]
		e.MemGB = max(e.MemGB, float32(memoryOf(&r, id, o)/1024))
		named = named && r.Listed &&
			!slices.ContainsFunc(r.Processes, func(p device.Process) bool { return p.MiB <= 0 })
	}
	use, mem := device.Use(means, names)
	if e.Rate = use; alone {
		e.Value = float64(device.Power(means, names))
		if e.MemGB == 0 && !named { // it is not said who has how much
			e.MemGB = mem
		}
	}
	return e
}

// memoryOf returns the memory, in MiB, that the processes of a job have on a device, as far as it is reported.
func memoryOf(r *device.Reading, id sched.JobID, o *owners) (mib float64) {
	for _, p := range r.Processes {
		if job, ours := o.pids()[p.PID]; ours && job == id && p.MiB > 0 {
			mib += p.MiB
		}
	}
	return mib
}

// alike reports whether two measurements say about the same: within 2 %, or 1 W and a hundredth of use and GB.
func alike(a, b sched.Event) bool {
	near := func(x, y, least float64) bool { return math.Abs(x-y) <= max(least, 0.02*max(x, y)) }
	return near(a.Value, b.Value, 1) && near(a.Rate, b.Rate, 0.01) && near(float64(a.MemGB), float64(b.MemGB), 0.01)
}
