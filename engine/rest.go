package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// How long GPUs rest after a failed start that is blamed on one of them: firstRest, doubled with each further start
// that is blamed on the same GPU of their node, lastRest at most. Systems that decide in rounds do so every five
// minutes or sooner: with less the next round would try the same GPUs again.
const (
	firstRest = 5 * time.Minute
	lastRest  = time.Hour
)

// restSuspects has the GPUs that a failed start is blamed on rest, and those of their nodes with them: who is placed by
// what fits best would else be placed next to them, and what is broken is more often the node than the GPU. The job may
// be to blame, so at most half of the GPUs of a type are out of use at a time, see mayLose: where a node is too much,
// its suspects rest alone, and where they are too many, none.
func (r *run) restSuspects(suspects []sched.GPUID) {
	v := &r.s.view
	suspects = slices.Clone(suspects)
	slices.Sort(suspects)
	for len(suspects) > 0 {
		n := v.GPUs[suspects[0]].Node
		count := 1
		for count < len(suspects) && v.GPUs[suspects[count]].Node == n {
			count++
		}
		r.restOn(n, suspects[:count])
		suspects = suspects[count:]
	}
}

// restOn has node n rest, or the suspects on it.
func (r *run) restOn(n sched.NodeID, suspects []sched.GPUID) {
	v, node := &r.s.view, &r.s.view.Nodes[n]
	var all []sched.GPUID
	fails := 0
	for g := node.First; g < node.First+sched.GPUID(node.Spec.GPUs); g++ {
		fails = max(fails, int(v.GPUs[g].Blamed)) // not their sum: a gang is one start
		if v.Usable(g) {
			all = append(all, g)
		}
	}
	// they rest already, or are out of use
	some := slices.DeleteFunc(suspects, func(g sched.GPUID) bool { return !v.Usable(g) })
	free := mayLose(v, node.Spec.Type)
	rest := all
	if len(all) > free {
		rest = some
	}
	if len(some) == 0 || len(rest) > free {
		return
	}
	d := min(firstRest<<min(max(fails-1, 0), 4), lastRest)
	r.emit(&sched.Event{Time: v.Now, Kind: sched.Moved, Node: n, GPUs: rest, Code: sched.RestGPU,
		WorkFrom: v.Now.Add(d),
		Why:      sched.Reason{Code: sched.WhyStartFailed, A: float64(fails)},
		Text:     fmt.Sprintf("a start failed on GPU %d", some[0])})
}

// mayLose returns how many more GPUs of a type may rest or be quarantined for failed starts: half of them in all.
func mayLose(v *sched.View, t sched.TypeID) int {
	all, lost := 0, 0
	for g := range v.GPUs {
		gpu, n := &v.GPUs[g], &v.Nodes[v.GPUs[g].Node]
		if n.Spec.Type != t || !n.Open() || gpu.State != sched.GPUInUse {
			continue
		}
		all++
		if !gpu.Usable() {
			lost++
		}
	}
	return all/2 - lost
}

// endRests offers the GPUs again whose rest is over, node by node.
func (r *run) endRests(now sched.Time) {
	if r.s.rests.next(&r.s.view) > now {
		return
	}
	var over []sched.GPUID
	for _, g := range r.s.rests {
		if r.s.view.GPUs[g].Rests <= now {
			over = append(over, g)
		}
	}
	for len(over) > 0 {
		n, count := r.s.view.GPUs[over[0]].Node, 1
		for count < len(over) && r.s.view.GPUs[over[count]].Node == n {
			count++
		}
		r.emit(&sched.Event{Time: now, Kind: sched.Moved, Node: n, GPUs: over[:count], Code: sched.RestedGPU})
		over = over[count:]
	}
}

// rests lists the GPUs of which GPU.Rests is set, by rising number.
type rests []sched.GPUID

// next returns when the next rest is over, Never if none is under way.
func (r rests) next(v *sched.View) sched.Time {
	at := sched.Never
	for _, g := range r {
		at = min(at, v.GPUs[g].Rests)
	}
	return at
}

// set has GPU g rest until a time, or, with 0, no longer. The list stays sorted, whatever led to it.
func (r *rests) set(v *sched.View, g sched.GPUID, until sched.Time) {
	v.GPUs[g].Rests = until
	switch i, found := slices.BinarySearch(*r, g); {
	case until != 0 && !found:
		*r = slices.Insert(*r, i, g)
	case until == 0 && found:
		*r = slices.Delete(*r, i, i+1)
	}
}

// absolve lifts the quarantine, and ends the rest, of GPUs that were taken out of use from outside, and are back: they
// have been looked at.
func (r *rests) absolve(v *sched.View, first sched.GPUID, count int) {
	for g := first; g < first+sched.GPUID(count); g++ {
		v.GPUs[g].Quarantined, v.GPUs[g].Blamed = false, 0
		r.set(v, g, 0)
	}
}
