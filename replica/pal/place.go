package pal

import "slices"

// place gives GPUs to jobs. With the queue and who runs as they were, only RandomNonSticky would choose otherwise.
func (r *run) place() {
	if !r.changed && r.Policy != RandomNonSticky {
		return
	}
	r.changed = false
	if r.Policy.sticky() {
		r.placeWaiting()
	} else {
		r.placeAgain()
	}
}

// placeAgain releases all GPUs and places the first jobs of the queue, as many as the cluster has GPUs for. By class
// where scores matter: that changes who chooses first, not who runs.
func (r *run) placeAgain() {
	list := r.fitting()
	if slices.Equal(list, r.placed) && r.Policy != RandomNonSticky {
		return
	}
	r.list, r.placed = r.placed, list
	copy(r.free, r.whole)
	r.idle = r.gpus()
	for _, j := range list {
		r.choose(j)
		r.assign(j, r.pick)
	}
	for _, j := range r.running {
		if j.chosen != r.now {
			r.suspend(j)
		}
	}
	r.forgetStopped()
}

// fitting is the longest head of the queue that the cluster has GPUs for, in the order of placing. Placements fail only
// for want of GPUs, so there is no more to place.
func (r *run) fitting() []*job {
	left, n := r.gpus(), 0
	for n < len(r.queue) && r.queue[n].GPUs <= left {
		left -= r.queue[n].GPUs
		n++
	}
	head := r.queue[:n]
	if !r.Policy.scored() {
		return append(r.list[:0], head...)
	}
	list := r.list[:0]
	for c := range Classes {
		for _, j := range head {
			if j.model.Class == c {
				list = append(list, j)
			}
		}
	}
	return list
}

// placeWaiting places waiting jobs in order. One that does not fit takes GPUs from running jobs behind it, the last
// first, until it fits. If it never does, they stay without, and those behind it wait.
func (r *run) placeWaiting() {
	for i, j := range r.queue {
		if j.running {
			continue
		}
		if r.idle < j.GPUs {
			r.evict(j.GPUs, r.queue[i+1:])
		}
		if r.idle < j.GPUs {
			return
		}
		r.choose(j)
		r.assign(j, r.pick)
	}
}

// evict stops running jobs from the end of the list until n GPUs are idle.
func (r *run) evict(n int, list []*job) {
	for i := len(list) - 1; i >= 0 && r.idle < n; i-- {
		if j := list[i]; j.running {
			r.suspend(j)
			r.release(j)
		}
	}
	r.forgetStopped()
}

func (r *run) forgetStopped() {
	r.running = slices.DeleteFunc(r.running, func(j *job) bool { return !j.running })
}

// release frees the GPUs of j.
func (r *run) release(j *job) {
	for node, set := range j.held {
		r.free[node] |= set
	}
	r.idle += j.GPUs
}

// choose puts into r.pick the GPUs for j, which has no more than are idle, and takes them.
func (r *run) choose(j *job) {
	clear(r.pick)
	switch r.Policy {
	case PAL:
		r.pickPAL(r.classes[j.model.Class], j.GPUs)
	case PMFirst:
		r.pickPMFirst(r.classes[j.model.Class], j.GPUs)
	case PackedSticky, PackedNonSticky:
		r.pickPacked(j.GPUs)
	default:
		r.pickRandom(j.GPUs)
	}
	for node, set := range r.pick {
		r.free[node] &^= set
	}
	r.idle -= j.GPUs
}
