package timeline

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// gpu is what a GPU is, and since when.
type gpu struct {
	class Class
	since sched.Time
}

// refreshNode looks at the GPUs of a node again, and at the jobs that are to hold other GPUs than they do: where GPUs
// may not be given to jobs any more, the engine takes such targets back.
func (t *Timeline) refreshNode(v *sched.View, n sched.NodeID) {
	if n < 0 || int(n) >= len(v.Nodes) {
		return
	}
	node := &v.Nodes[n]
	for int(n) >= len(t.Nodes) {
		t.Nodes, t.idle = append(t.Nodes, Node{}), append(t.idle, 0)
	}
	t.retype(v, n)
	for g := node.First; g < node.First+sched.GPUID(t.Nodes[n].GPUs); g++ {
		t.refreshGPU(v, g)
	}
	for _, id := range slices.Clone(t.open) {
		t.refreshJob(v, id)
	}
}

// retype takes what machine is in the slot of a node.
func (t *Timeline) retype(v *sched.View, n sched.NodeID) {
	spec, was := &v.Nodes[n].Spec, &t.Nodes[n]
	now := Node{cmpOr(spec.Name, was.Name), spec.Type, spec.Rack, v.Nodes[n].First, spec.GPUs}
	if *was == now {
		return
	}
	if was.GPUs > 0 {
		t.free[was.Type].change(t.idle[n], 0)
		t.free[was.Type].nodes[0]--
	}
	for int(spec.Type) >= len(t.free) {
		t.free = append(t.free, free{})
	}
	f := &t.free[spec.Type]
	f.size = max(f.size, spec.GPUs)
	f.change(0, t.idle[n])
	f.nodes[0]++
	*was, t.stale = now, true
}

func cmpOr(name, was string) string {
	if name == "" {
		return was
	}
	return name
}

// refreshGPU takes the class of a GPU.
func (t *Timeline) refreshGPU(v *sched.View, g sched.GPUID) {
	for int(g) >= len(t.gpus) {
		t.gpus = append(t.gpus, gpu{class: gone})
		t.counts[gone]++
	}
	was, now := t.gpus[g].class, classOf(v, g)
	if was == now {
		return
	}
	t.spells = spelled(t.spells, g, was, t.gpus[g].since, v.Now)
	t.gpus[g].class, t.gpus[g].since = now, v.Now
	t.counts[was]--
	t.counts[now]++
	t.stale = true
	n := v.GPUs[g].Node
	switch {
	case was == Unwanted:
		t.free[t.Nodes[n].Type].change(t.idle[n], t.idle[n]-1)
		t.idle[n]--
	case now == Unwanted:
		t.free[t.Nodes[n].Type].change(t.idle[n], t.idle[n]+1)
		t.idle[n]++
	}
}

// refreshJob looks at a job again: whether it waits, and at the GPUs that it holds and is to hold, or did.
func (t *Timeline) refreshJob(v *sched.View, id sched.JobID) {
	j, l := &v.Jobs[id], t.jobs.of(id)
	if l == nil {
		return
	}
	for _, g := range l.marked {
		t.refreshGPU(v, g)
	}
	l.marked = append(append(l.marked[:0], j.GPUs...), j.Target...)
	for _, g := range l.marked {
		t.refreshGPU(v, g)
	}
	if j.State == sched.Done && len(l.marked) == 0 {
		l.marked = nil
	}
	waits := j.State == sched.Waiting && j.Eligible() && len(j.Target) == 0 && !j.HoldsDevices()
	now := group{j.Spec.Types, j.Spec.GPUs.Min}
	if waits != l.waits || waits && now != l.group {
		said := t.said(id, l)
		if l.waits {
			t.queue.change(l.group, said.GPUs.Want, -1)
		}
		said.GPUs = j.Spec.GPUs
		if waits {
			t.queue.change(now, j.Spec.GPUs.Want, 1)
		}
		l.waits, l.group, t.stale = waits, now, true
	}
	t.keepOpen(id, len(j.Target) > 0 && !slices.Equal(j.Target, j.GPUs))
}

// keepOpen notes whether a job is to hold other GPUs than it does.
func (t *Timeline) keepOpen(id sched.JobID, open bool) {
	l := t.jobs.of(id)
	if l.unsettle == open {
		return
	}
	l.unsettle = open
	if open {
		t.open = append(t.open, id)
		return
	}
	t.open = slices.DeleteFunc(t.open, func(x sched.JobID) bool { return x == id })
}

// settleIdle finds the classes of idle GPUs, if anything changed.
func (t *Timeline) settleIdle() {
	if !t.stale {
		return
	}
	t.stale = false
	copy(t.now1.counts[:], t.counts[:len(t.now1.counts)])
	t.now1.counts[Unwanted] = 0
	for i := range t.free {
		if f := &t.free[i]; f.gpus > 0 {
			t.now1.counts[t.queue.idleClass(f, sched.TypeID(i))] += f.gpus
		}
	}
}

// spelled adds that GPU g was in a class from since to now, if it was given to no job there. It joins the spell before
// if that was of the GPU next to it, at the same time.
func spelled(list []Spell, g sched.GPUID, c Class, since, now sched.Time) []Spell {
	if c < Down || c > Booting || now <= since {
		return list
	}
	if n := len(list); n > 0 {
		last := &list[n-1]
		next := last.GPUs.First + sched.GPUID(last.GPUs.Count)
		if last.Class == c && last.From == since && last.To == now && next == g {
			last.GPUs.Count++
			return list
		}
	}
	return append(list, Spell{Run{g, 1}, c, since, now})
}

// Spells returns the times in which GPUs were given to no job, up to the last event about a job that was not done.
func (t *Timeline) Spells() []Spell {
	list := slices.Clone(t.spells)
	for g, x := range t.gpus {
		list = spelled(list, sched.GPUID(g), x.class, x.since, max(t.end, x.since))
	}
	return list
}
