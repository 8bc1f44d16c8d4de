package speedup

// Measured reports whether a placement, the number of GPUs on each node, zeros left out, was measured as such, in
// whatever rotation. Placed interpolates the others.
func (s *Steps) Measured(placement []int) bool {
	var key []byte
	for _, g := range placement {
		if g > 0 {
			key = append(key, byte(min(g, 255)))
		}
	}
	_, found := s.exact[string(smallestRotation(key))]
	return found
}

// Points calls yield with all points that Placed interpolates between, by rising nodes, GPUs and samples on each GPU:
// means over placements, and what was measured by nodes and GPUs alone. Times are in seconds.
func (s *Steps) Points(yield func(nodes, gpus, perGPU int, step, sync float64)) {
	for _, nodes := range s.nodes {
		l := s.grid[nodes]
		for i, c := range l.curves {
			for k, local := range c.local {
				yield(nodes, l.gpus[i], int(local), c.step[k], c.sync[k])
			}
		}
	}
}
