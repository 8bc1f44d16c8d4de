package controller

import (
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// tally keeps counts of jobs and GPUs, and who shares GPUs, as of the end of a batch. It looks at what events touched:
// a batch costs what it changes, however many jobs and nodes there are. The first time it looks at all.
type tally struct {
	jobs    [sched.Done + 1]int // by state
	phases  [len(phases)]int
	gpus    [len(gpuStates)]int
	tenants map[sched.GPUID][]sched.JobID // of GPUs that attempts may share, by rising number

	primed  bool
	of      []tallied // by JobID
	stands  []int8    // by GPUID: where it counts, of gpuStates; -1: nowhere
	touched []sched.JobID
	nodes   []sched.NodeID
	looks   int // at jobs and GPUs so far
}

// tallied is how a job counts.
type tallied struct {
	is    bool
	state sched.JobState
	phase int8          // of phases; -1: none of them
	held  []sched.GPUID // by its attempt
	share bool          // with others
}

// note notes what an event touches.
func (t *tally) note(v *sched.View, e *sched.Event) {
	if names(e) {
		t.touched = append(t.touched, e.Job)
	}
	if e.Node != sched.None && e.Kind.Form().Node != sched.NotNamed {
		t.nodes = append(t.nodes, e.Node)
	}
	if e.Kind == sched.GPUChanged {
		t.nodes = append(t.nodes, v.GPUs[int(e.Value)].Node)
	}
}

// names reports whether an event is about a job: of others its number may be anything.
func names(e *sched.Event) bool { return e.Job != sched.None && e.Kind.Form().Job != sched.NotNamed }

// settle counts again what events touched since it was called last.
func (t *tally) settle(v *sched.View) {
	if !t.primed {
		t.primed, t.tenants = true, make(map[sched.GPUID][]sched.JobID)
		t.touched, t.nodes = t.touched[:0], t.nodes[:0]
		for id := range v.Jobs {
			t.touched = append(t.touched, sched.JobID(id))
		}
		for n := range v.Nodes {
			t.nodes = append(t.nodes, sched.NodeID(n))
		}
	}
	for _, id := range t.touched {
		t.countJob(v, id)
	}
	for _, n := range t.nodes {
		for g := v.Nodes[n].First; g < v.Nodes[n].First+sched.GPUID(v.Nodes[n].Spec.GPUs); g++ {
			t.countGPU(v, g)
		}
	}
	t.touched, t.nodes = t.touched[:0], t.nodes[:0]
}

// countJob counts a job, and the GPUs that it has and had, as they are now.
func (t *tally) countJob(v *sched.View, id sched.JobID) {
	t.looks++
	for int(id) >= len(t.of) {
		t.of = append(t.of, tallied{})
	}
	j, x := &v.Jobs[id], &t.of[id]
	if x.is {
		t.jobs[x.state]--
		if x.phase >= 0 {
			t.phases[x.phase]--
		}
	}
	if !slices.Equal(x.held, j.GPUs) || x.share != shares(j) {
		was := x.held
		if x.share {
			t.leave(id, was)
		}
		x.held, x.share = slices.Clone(j.GPUs), shares(j)
		if x.share {
			t.join(id, x.held)
		}
		for _, g := range slices.Concat(was, x.held) {
			t.countGPU(v, g)
		}
	}
	x.is, x.state, x.phase = true, j.State, int8(slices.Index(phases[:], record.Phase(j)))
	t.jobs[x.state]++
	if x.phase >= 0 {
		t.phases[x.phase]++
	}
}

// shares reports whether the attempt of a job may share its GPUs.
func shares(j *sched.Job) bool { return j.HoldsDevices() && j.Live.Share == sched.Shared }

func (t *tally) join(id sched.JobID, gpus []sched.GPUID) {
	for _, g := range gpus {
		at, _ := slices.BinarySearch(t.tenants[g], id)
		t.tenants[g] = slices.Insert(t.tenants[g], at, id)
	}
}

func (t *tally) leave(id sched.JobID, gpus []sched.GPUID) {
	for _, g := range gpus {
		t.tenants[g] = slices.DeleteFunc(t.tenants[g], func(other sched.JobID) bool { return other == id })
		if len(t.tenants[g]) == 0 {
			delete(t.tenants, g)
		}
	}
}

// countGPU counts a GPU as it is now.
func (t *tally) countGPU(v *sched.View, g sched.GPUID) {
	t.looks++
	for int(g) >= len(t.stands) {
		t.stands = append(t.stands, -1)
	}
	if is := t.stands[g]; is >= 0 {
		t.gpus[is]--
	}
	t.stands[g] = standOf(v, g)
	if is := t.stands[g]; is >= 0 {
		t.gpus[is]++
	}
}

// standOf is where a GPU counts, of gpuStates; -1: nowhere, as its node is not there.
func standOf(v *sched.View, g sched.GPUID) int8 {
	switch {
	case !v.Nodes[v.GPUs[g].Node].Joined():
		return -1
	case v.GPUs[g].Holders > 0:
		return 0
	case v.Usable(g):
		return 1
	}
	return 2
}

// figures are the counts that people look at. A busy GPU counts though it may not be given to another, as on a node
// that is silent.
func (t *tally) figures() (gpus string, running, waiting int32) {
	return fmt.Sprintf("%d of %d", t.gpus[0], t.gpus[0]+t.gpus[1]), int32(t.jobs[sched.Active]),
		int32(t.jobs[sched.Waiting] + t.jobs[sched.Held])
}

// gpuStates are the states of GPUs that are reported apart, and phases those of jobs that are not done.
var (
	gpuStates = [...]string{"busy", "free", "unusable"}
	phases    = [...]v1alpha1.Phase{v1alpha1.Pending, v1alpha1.Starting, v1alpha1.Running, v1alpha1.Stopping}
)
