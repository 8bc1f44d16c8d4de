package metrics

import "github.com/trainyard/trainyard/sched"

// holdings is what attempts hold. Few of the jobs that ever came do.
type holdings struct {
	place []int32 // by job: its place in list, from 1; 0 = it holds nothing
	list  []holding
	spare []int32 // places that are free
}

// holding is what an attempt holds.
type holding struct {
	set  []sched.GPUID
	from sched.Time // since when it works; Never = it does not
}

// arrived makes room for the next job.
func (h *holdings) arrived() { h.place = append(h.place, 0) }

// of returns what a job holds; nil = nothing.
func (h *holdings) of(id sched.JobID) *holding {
	if at := h.place[id]; at > 0 {
		return &h.list[at-1]
	}
	return nil
}

// set returns the GPUs that a job holds.
func (h *holdings) set(id sched.JobID) []sched.GPUID {
	if x := h.of(id); x != nil {
		return x.set
	}
	return nil
}

// first returns since when an attempt of one of the jobs works; Never = none does.
func (h *holdings) first(jobs []sched.JobID) sched.Time {
	from := sched.Never
	for _, id := range jobs {
		if x := h.of(id); x != nil {
			from = min(from, x.from)
		}
	}
	return from
}

// byGPU returns who holds each of so many GPUs.
func (h *holdings) byGPU(gpus int) [][]sched.JobID {
	on := make([][]sched.JobID, gpus)
	for id, at := range h.place {
		if at > 0 {
			for _, g := range h.list[at-1].set {
				on[g] = append(on[g], sched.JobID(id))
			}
		}
	}
	return on
}

// take has a job hold a set, which is copied.
func (h *holdings) take(id sched.JobID, set []sched.GPUID) []sched.GPUID {
	if h.place[id] == 0 {
		if n := len(h.spare); n > 0 {
			h.place[id], h.spare = h.spare[n-1], h.spare[:n-1]
		} else {
			h.list = append(h.list, holding{})
			h.place[id] = int32(len(h.list))
		}
	}
	x := h.of(id)
	x.set, x.from = append(x.set, set...), sched.Never
	return x.set
}

// start notes that the attempt of an event has come up.
func (h *holdings) start(e *sched.Event) {
	if x := h.of(e.Job); x != nil {
		x.from = e.WorkFrom
	}
}

// drop has a job hold nothing.
func (h *holdings) drop(id sched.JobID) {
	if x := h.of(id); x != nil {
		x.set, x.from = x.set[:0], sched.Never
		h.spare, h.place[id] = append(h.spare, h.place[id]), 0
	}
}
