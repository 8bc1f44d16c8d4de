package explain

import (
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Waiting says why a job does not run: the one constraint that binds, with its numbers. Fields that a code does not
// mention are zero.
type Waiting struct {
	Code    Code
	Need    int32        // GPUs that the job needs to start, all of one type
	Have    int32        // GPUs, see the codes
	Limit   int32        // GPUs that the user of the job may hold
	Largest int32        // most free GPUs of the type on one node
	Type    sched.TypeID // of the GPUs counted: of those that the job accepts, the one that is nearest to doing
	Until   sched.Time   // see the codes; 0 = unknown
	// Unmeasured: the job allows other widths than Need, but nothing is known of its speed at any, so that it is given
	// Need or none.
	Unmeasured bool
	Jobs       []sched.JobID // see the codes
	GPUs       []sched.GPUID // see the codes
	// Ahead are the waiting jobs that rank before it, best first; nil where the system has no order that could be
	// shown.
	Ahead []sched.JobID
	// Before counts those where they are not named.
	Before int32
}

// CountAhead returns how many jobs are known to wait and to rank before it.
func (w *Waiting) CountAhead() int { return max(len(w.Ahead), int(w.Before)) }

// Code names the constraint that keeps a job from running. The words are for programs that read answers.
type Code uint8

// Constraints. Those from WaitTooWide on are of jobs that may be given GPUs and are to hold none; they fill in Need,
// Have, Largest and Type.
const (
	NotWaiting  Code = iota // it runs, or is done
	WaitStarts              // it was asked to start and is not up yet
	WaitStops               // its attempt is to end first: it is stopped, to run elsewhere or for good
	WaitFreeing             // GPUs of its target are not free yet: Jobs are on GPUs still
	WaitPaused              // its user paused it
	WaitAfter               // Jobs, on which it depends, are not done
	WaitArray               // Limit tasks of its array may run at once: Jobs do, or are before it
	WaitUntil               // its user wants it not before Until
	WaitRetry               // after a failed start, or a lost node, it is not tried before Until
	WaitTooWide             // there will never be more than Have GPUs of the type, rented ones included
	WaitQuota               // its user holds Have GPUs, by Jobs, of Limit
	WaitRented              // Have GPUs are there; others of the type may be rented
	// Have GPUs may be used; GPUs are down, draining, asleep, foreign, missing, stuck, withheld, quarantined or resting
	WaitUnusable
	// the placement would refuse it though the whole cluster were free: nodes, CPUs or memory do not suit it
	WaitNeverFits
	WaitBehind // Jobs[0], which ranks before it, does not fit, and no one may pass
	// Have GPUs are free; Jobs hold the others, and some of them cannot be preempted before Until
	WaitBusy
	// Have GPUs are free, but not where the placement wants them, or without the CPUs and memory that it asks for
	WaitFragmented
	WaitReserved  // it would take GPUs that are reserved for Jobs[0], which ranks before it
	WaitUngranted // Have GPUs are free, but the division of GPUs gives it none
	WaitUndecided // it fits, Have GPUs are free; the system decides again at Until
	WaitSystem    // Have GPUs are free; the system has its own reasons, see Explain
)

var waitWords = [...]string{"", "starts", "stops", "freeing", "paused", "after", "array", "until", "retry",
	"too-wide", "quota", "rented", "unusable", "never-fits", "behind", "busy", "fragmented", "reserved", "ungranted",
	"undecided", "system"}

// String returns the word of c; NotWaiting is "".
func (c Code) String() string {
	if int(c) < len(waitWords) {
		return waitWords[c]
	}
	return fmt.Sprintf("wait-%d", uint8(c))
}

// OfView says what the view alone shows of job id, but for the Jobs of WaitArray, which are its OpenTasks. free is true
// of a job that may be given GPUs and is to hold none.
func OfView(v *sched.View, id sched.JobID) (w Waiting, free bool) {
	j := &v.Jobs[id]
	switch {
	case j.State == sched.Done:
	case j.Cancel:
		w.Code = WaitStops
	case j.Paused:
		w.Code = WaitPaused
	case j.Attempt == sched.Running:
	case j.Attempt == sched.Starting:
		w.Code = WaitStarts
	case j.Attempt == sched.Stopping && len(j.Target) > 0:
		w.Code = WaitStops
	case j.State == sched.Held:
		w = whyHeld(v, j)
	case len(j.Target) > 0:
		w = whyNotFree(v, id)
	default:
		return w, true
	}
	return w, false
}

// OpenTasks returns the tasks of the array of job id, which waits for them alone, that have their turn and are not
// done, in JobID order: those that are paused keep it. All tasks are looked at: who asks about many of one array asks
// once.
func OpenTasks(v *sched.View, id sched.JobID) (open []sched.JobID) {
	a := &v.Jobs[id].Spec.Ties.Array
	first := a.First(id)
	for id := first; int(id) < min(int(first)+int(a.Size), len(v.Jobs)); id++ {
		if j := &v.Jobs[id]; j.State != sched.Done && (j.State != sched.Held || j.BlockedBy() == 0) {
			open = append(open, id)
		}
	}
	return open
}

// whyHeld says why a job is held that its user has not paused.
func whyHeld(v *sched.View, j *sched.Job) Waiting {
	if j.BlockedBy() > 0 {
		w := Waiting{Code: WaitAfter}
		for _, d := range j.Spec.After {
			if v.Jobs[d].State != sched.Done {
				w.Jobs = append(w.Jobs, d)
			}
		}
		if a := &j.Spec.Ties.Array; len(w.Jobs) == 0 && a.Limited() {
			w = Waiting{Code: WaitArray, Limit: a.AtOnce}
		}
		return w
	}
	if j.NotBefore > j.Spec.NotBef {
		return Waiting{Code: WaitRetry, Until: j.NotBefore}
	}
	return Waiting{Code: WaitUntil, Until: max(j.NotBefore, v.Now)}
}

// whyNotFree names the attempts that are still on the target of job id. Without any it is about to start.
func whyNotFree(v *sched.View, id sched.JobID) Waiting {
	w := Waiting{Code: WaitStarts}
	j := &v.Jobs[id]
	for _, g := range j.Target {
		if gpu := &v.GPUs[g]; gpu.Holders >= limitOf(v, j.Share) || gpu.HeldAlone > 0 {
			w.GPUs = append(w.GPUs, g)
		}
	}
	if len(w.GPUs) == 0 {
		return w
	}
	w.Code = WaitFreeing
	for o := range v.Jobs {
		if slices.ContainsFunc(v.Jobs[o].GPUs, func(g sched.GPUID) bool { return slices.Contains(w.GPUs, g) }) {
			w.Jobs = append(w.Jobs, sched.JobID(o))
		}
	}
	return w
}

// limitOf returns how many may be on a GPU next to one another.
func limitOf(v *sched.View, share sched.Share) int16 {
	if share == sched.Shared {
		return int16(v.ShareLimit)
	}
	return 1
}

// Stock counts the GPUs of a type.
type Stock struct {
	typ     sched.TypeID
	ever    int // that may be there, rented ones included
	there   int // of nodes that are not gone for good
	usable  int
	free    int // usable and no one's target
	largest int // free on one node
}

// Stocks counts the GPUs of the types that a job accepts, by type.
func Stocks(v *sched.View, types sched.TypeSet) []Stock {
	var all [sched.MaxGPUTypes]Stock
	for i := range v.Pools {
		all[v.Pools[i].Spec.Type].ever += int(v.Pools[i].Spec.Max) * v.Pools[i].Spec.GPUs
	}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.State == sched.NodeGone {
			continue
		}
		s, free, known := &all[n.Spec.Type], 0, n.Spec.GPUs
		for g := n.First; g < n.First+sched.GPUID(n.Spec.GPUs); g++ {
			if v.GPUs[g].State == sched.GPUForgotten {
				known--
			}
			if v.Usable(g) {
				s.usable++
				if v.GPUs[g].Targets == 0 {
					free++
				}
			}
		}
		s.there += known
		if v.PoolOf(n) == nil {
			s.ever += known
		}
		s.free += free
		s.largest = max(s.largest, free)
	}
	var list []Stock
	for t := range all {
		s := &all[t]
		s.typ, s.ever = sched.TypeID(t), max(s.ever, s.there)
		if types.Has(s.typ) {
			list = append(list, *s)
		}
	}
	return list
}

// hurdles returns how many of the counts of s are n or more, from the widest on.
func (s *Stock) hurdles(n int) int {
	for i, have := range [...]int{s.ever, s.there, s.usable, s.free} {
		if have < n {
			return i
		}
	}
	return 4
}

// nearest returns the stock that is nearest to having n free GPUs.
func nearest(list []Stock, n int) Stock {
	best := list[0]
	for _, s := range list[1:] {
		a, b := s.hurdles(n), best.hurdles(n)
		if a > b || a == b && (s.free > best.free || s.free == best.free && s.usable > best.usable) {
			best = s
		}
	}
	return best
}

// Room says what keeps n GPUs from being free for job id, by their numbers alone: NotWaiting if nothing does.
func Room(v *sched.View, id sched.JobID, n int) Waiting {
	w := OfStocks(Stocks(v, v.Jobs[id].Spec.Types), n)
	switch w.Code {
	case WaitUnusable:
		w.GPUs = Unusable(v, w.Type)
	case WaitBusy:
		w.Jobs = holdersOf(v, w.Type)
	}
	return w
}

// OfStocks is Room in numbers, without jobs and GPUs.
func OfStocks(list []Stock, n int) Waiting {
	s := nearest(list, n)
	w := Waiting{Need: int32(n), Largest: int32(s.largest), Type: s.typ, Have: int32(s.free)}
	switch s.hurdles(n) {
	case 0:
		w.Code, w.Have = WaitTooWide, int32(s.ever)
	case 1:
		w.Code, w.Have = WaitRented, int32(s.there)
	case 2:
		w.Code, w.Have = WaitUnusable, int32(s.usable)
	case 3:
		w.Code = WaitBusy
	}
	return w
}

// Unusable returns the GPUs of type t that are not to be used, but for those that are gone for good or forgotten.
func Unusable(v *sched.View, t sched.TypeID) (list []sched.GPUID) {
	for g := range v.GPUs {
		n := &v.Nodes[v.GPUs[g].Node]
		if v.GPUs[g].State == sched.GPUForgotten || n.Spec.Type != t || n.State == sched.NodeGone {
			continue
		}
		if !v.Usable(sched.GPUID(g)) {
			list = append(list, sched.GPUID(g))
		}
	}
	return list
}

// holdersOf returns the jobs that are to hold usable GPUs of type t.
func holdersOf(v *sched.View, t sched.TypeID) (list []sched.JobID) {
	for id := range v.Jobs {
		set := v.Jobs[id].Target
		if len(set) > 0 && v.Nodes[v.GPUs[set[0]].Node].Spec.Type == t && slices.ContainsFunc(set, v.Usable) {
			list = append(list, sched.JobID(id))
		}
	}
	return list
}
