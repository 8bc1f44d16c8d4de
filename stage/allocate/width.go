package allocate

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Wants says how wide each job is to run, and how, as if there were GPUs for all: no one queues.
type Wants interface {
	// Want returns the width wanted in GPUs, > 0 and within the job's range, and the configuration with it.
	Want(v *sched.View, j sched.JobID) (gpus int32, c sched.Config)
	// Narrower returns the configuration on fewer GPUs than wanted; ok is false if the job cannot run so.
	Narrower(v *sched.View, j sched.JobID, gpus int32) (c sched.Config, ok bool)
}

// ByWidth gives every job the width it wants, down the order, as far as the GPUs go. Whoever has what it wants keeps
// it. A job for which there is less waits for the rest, or goes on with what it has, if the missing nodes are there
// within the time a restart costs; else, or with Partial, it makes do with what there is. Who is on a node that drains
// is placed again. Where there are classes, a newcomer of a higher one comes before a holder that wants more.
type ByWidth struct {
	Wants
	Partial bool                   // as the authors of BOA have it: always make do
	Soon    func(*sched.View) bool // whether nodes that boot are there within a restart; nil = no

	classes classes
}

var _ sched.Allocator = ByWidth{}

// Allocate appends the grants, in the order of ranks. Those who hold GPUs come before those who do not.
func (b ByWidth) Allocate(v *sched.View, room []int32, order []sched.JobID, d *sched.Desired,
	dst []sched.Grant) []sched.Grant {
	from, left := len(dst), slices.Clone(room)
	order = b.classes.arrange(v, order)
	wait := !b.Partial && b.Soon != nil && b.Soon(v)
	for _, j := range order { // what is kept: all that one has, or as much of it as one wants
		job := &v.Jobs[j]
		if len(job.Target) == 0 {
			if b.classes.take {
				take(left, job.Spec.Types, b.least(v, j, wait))
			}
			continue
		}
		g, t := b.keep(v, j), typeOf(v, job)
		if !b.classes.take || b.fit(v, &g, left[t]) {
			room[t] -= g.GPUs
			left[t] -= g.GPUs
			dst = append(dst, g)
		}
	}
	next, end := from, len(dst)
	for _, j := range order {
		if len(v.Jobs[j].Target) == 0 {
			if g := b.begin(v, room, j, wait); g.GPUs > 0 {
				dst = append(dst, g)
			}
		} else if next < end && dst[next].Job == j {
			b.grow(v, room, &dst[next], wait)
			next++
		}
	}
	return dst
}

// keep returns what a holder is granted before it grows.
func (b ByWidth) keep(v *sched.View, j sched.JobID) sched.Grant {
	job := &v.Jobs[j]
	have := int32(len(job.Target))
	want, c := b.Want(v, j)
	g := sched.Grant{Job: j, GPUs: want, Least: min(want, have), Want: want, Config: c, Again: drains(v, job)}
	if want > have {
		g.GPUs, g.Config = have, job.Config
	}
	return g
}

// fit has a grant be of no more GPUs than are left, and reports whether it can be.
func (b ByWidth) fit(v *sched.View, g *sched.Grant, left int32) bool {
	if g.GPUs <= left {
		return true
	}
	for n := left; n >= v.Jobs[g.Job].Spec.GPUs.Min; n-- {
		if c, ok := b.Narrower(v, g.Job, n); ok {
			g.GPUs, g.Least, g.Config = n, n, c
			return true
		}
	}
	return false
}

// least returns the fewest GPUs with which a newcomer may start: all that it wants, if it is to wait for the rest.
func (b ByWidth) least(v *sched.View, j sched.JobID, wait bool) int32 {
	want, _ := b.Want(v, j)
	if wait {
		return want
	}
	for n := v.Jobs[j].Spec.GPUs.Min; n < want; n++ {
		if _, ok := b.Narrower(v, j, n); ok {
			return n
		}
	}
	return want
}

// ByClass has the classes of jobs come first.
func (b ByWidth) ByClass(c sched.Classer, take bool) sched.Allocator {
	b.classes = classes{of: c, take: take}
	return b
}

// grow has a holder that wants more take what there is of it.
func (b ByWidth) grow(v *sched.View, room []int32, g *sched.Grant, wait bool) {
	t := typeOf(v, &v.Jobs[g.Job])
	more := min(g.Want-g.GPUs, room[t])
	if more <= 0 || g.GPUs+more < g.Want && wait {
		return
	}
	gpus := g.GPUs + more
	_, c := b.Want(v, g.Job)
	if gpus < g.Want {
		narrow, ok := b.Narrower(v, g.Job, gpus)
		if !ok {
			return
		}
		c = narrow
	}
	room[t] -= gpus - g.GPUs
	g.GPUs, g.Config = gpus, c
}

// begin returns what a newcomer is granted, no GPUs if it is to wait.
func (b ByWidth) begin(v *sched.View, room []int32, j sched.JobID, wait bool) sched.Grant {
	want, c := b.Want(v, j)
	g := sched.Grant{Job: j, GPUs: want, Want: want, Config: c}
	spec, best := v.Jobs[j].Spec, -1
	for t := range room {
		if spec.Types.Has(sched.TypeID(t)) && (best < 0 || room[t] > room[best]) {
			best = t
		}
	}
	if best < 0 || room[best] < want && wait {
		return sched.Grant{}
	}
	for g.GPUs = min(want, room[best]); g.GPUs >= spec.GPUs.Min; g.GPUs-- {
		if g.GPUs == want {
			break
		}
		if narrow, ok := b.Narrower(v, j, g.GPUs); ok {
			g.Config = narrow
			break
		}
	}
	if g.GPUs < spec.GPUs.Min {
		return sched.Grant{}
	}
	room[best] -= g.GPUs
	g.Least = g.GPUs
	return g
}

// drains reports whether job j holds GPUs of a node that is to be emptied.
func drains(v *sched.View, j *sched.Job) bool {
	for left := j.Target; len(left) > 0; {
		n := &v.Nodes[v.GPUs[left[0]].Node]
		if n.Target == sched.NodeDraining {
			return true
		}
		for end := n.First + sched.GPUID(n.Spec.GPUs); len(left) > 0 && left[0] < end; {
			left = left[1:]
		}
	}
	return false
}

func typeOf(v *sched.View, j *sched.Job) sched.TypeID {
	return v.Nodes[v.GPUs[j.Target[0]].Node].Spec.Type
}
