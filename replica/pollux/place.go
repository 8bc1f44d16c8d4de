package pollux

// freeGPUs returns what is free on each node in addition to those of active jobs that keep what they hold.
func (r *run) freeGPUs(keeps func(i int) bool) []int {
	free := make([]int, r.nodes)
	for n := range free {
		free[n] = r.GPUsPerNode
	}
	for i, j := range r.active {
		if keeps(i) {
			for _, s := range j.held {
				free[s.node] -= s.gpus
			}
		}
	}
	return free
}

// take takes gpus of what is free, which must be there: from the node with most, the first of several, and on to the
// next while that is not enough.
func take(free []int, gpus int) (held []share) {
	for gpus > 0 {
		most := 0
		for n, f := range free {
			if f > free[most] {
				most = n
			}
		}
		s := share{most, min(free[most], gpus)}
		free[most] -= s.gpus
		gpus -= s.gpus
		held = append(held, s)
	}
	return held
}
