package speedup

import "slices"

// PerGPU returns the fewest and the most samples on a GPU that any placement was measured with.
func (s *Steps) PerGPU() (least, most int) { return s.least, s.most }

// Placed returns the time in seconds of an optimizer step, and the part of it spent on synchronisation, on a placement,
// which gives the number of GPUs on each node, zeros left out, with so many samples on each GPU. A node with more GPUs
// than any that was measured counts as several. ok is false if that is beyond what was measured.
func (s *Steps) Placed(placement []int, perGPU int) (step, sync float64, ok bool) {
	var room [maxNodes]byte
	key, gpus, nodes := room[:0], 0, 0
	for _, left := range placement {
		for left > 0 {
			g := min(left, s.width)
			gpus, nodes, left = gpus+g, nodes+1, left-g
			if len(key) < maxNodes {
				key = append(key, byte(g))
			}
		}
	}
	if nodes <= maxNodes {
		if step, sync, ok = s.exact[string(smallestRotation(key))].at(float64(perGPU)); ok {
			return step, sync, true
		}
	}
	return s.between(nodes, gpus, perGPU)
}

// At is Placed for so many GPUs on so many nodes, all full but for one that comes first: the placement of a gang on as
// few nodes as possible. On more nodes than that it is an average over the placements.
func (s *Steps) At(gpus, nodes, perGPU int) (step, sync float64, ok bool) {
	if gpus < 1 || nodes < 1 || nodes > gpus {
		return 0, 0, false
	}
	fewest := (gpus + s.width - 1) / s.width
	if nodes > fewest || fewest > maxNodes {
		return s.between(max(nodes, fewest), gpus, perGPU)
	}
	var room [maxNodes]byte
	key := room[:fewest]
	for i := range key {
		key[i] = byte(s.width)
	}
	key[0] = byte(gpus - s.width*(fewest-1))
	if step, sync, ok = s.exact[string(key)].at(float64(perGPU)); ok {
		return step, sync, true
	}
	return s.between(fewest, gpus, perGPU)
}

// Update returns the seconds of an update made of accum micro-batches of perGPU samples on each GPU: only the last is
// followed by synchronisation. 0 = unknown.
func (s *Steps) Update(gpus, nodes, perGPU, accum int) float64 {
	step, sync, ok := s.At(gpus, nodes, perGPU)
	if !ok {
		return 0
	}
	return step + float64(float64(accum-1)*(step-sync))
}

var _ Timer = (*Steps)(nil)

// between interpolates over nodes, GPUs and samples.
func (s *Steps) between(nodes, gpus, perGPU int) (step, sync float64, ok bool) {
	if nodes < 1 {
		return 0, 0, false
	}
	nodes = min(nodes, s.nodes[len(s.nodes)-1])
	local := float64(perGPU)
	if perGPU < s.least || perGPU > s.most {
		return 0, 0, false
	}
	i, found := slices.BinarySearch(s.nodes, nodes)
	if found {
		return s.grid[nodes].at(float64(gpus), local)
	}
	if i == 0 {
		return 0, 0, false
	}
	low, high := s.nodes[i-1], s.nodes[i]
	density := float64(gpus) / float64(nodes)
	stepLow, syncLow, ok1 := s.grid[low].at(density*float64(low), local)
	stepHigh, syncHigh, ok2 := s.grid[high].at(density*float64(high), local)
	f := share(float64(nodes), float64(low), float64(high))
	return mix(stepLow, stepHigh, f), mix(syncLow, syncHigh, f), ok1 && ok2
}

// at interpolates over GPUs, which need not be whole, and samples.
func (l layer) at(gpus, local float64) (step, sync float64, ok bool) {
	i := 0
	for i < len(l.gpus) && float64(l.gpus[i]) < gpus-1e-9 {
		i++
	}
	switch {
	case i == len(l.gpus) || i == 0 && float64(l.gpus[0]) > gpus+1e-9:
		return 0, 0, false
	case float64(l.gpus[i]) <= gpus+1e-9:
		return l.curves[i].beyond(local)
	}
	stepLow, syncLow, ok1 := l.curves[i-1].beyond(local)
	stepHigh, syncHigh, ok2 := l.curves[i].beyond(local)
	f := share(gpus, float64(l.gpus[i-1]), float64(l.gpus[i]))
	return mix(stepLow, stepHigh, f), mix(syncLow, syncHigh, f), ok1 && ok2
}

// beyond is at, but a curve that ends goes on as its last piece up to twice its end: wide gangs were measured with
// fewer samples on each GPU, up to the largest batch size, and what lies between two of them would fall into the hole.
func (c stepCurve) beyond(local float64) (step, sync float64, ok bool) {
	last := len(c.local) - 1
	if local <= c.local[last] || local > 2*c.local[last] {
		return c.at(local)
	}
	if last == 0 {
		return c.step[0], c.sync[0], true
	}
	f := share(local, c.local[last-1], c.local[last])
	step = max(mix(c.step[last-1], c.step[last], f), minStep)
	return step, min(max(mix(c.sync[last-1], c.sync[last], f), 0), step), true
}

// at interpolates over samples.
func (c stepCurve) at(local float64) (step, sync float64, ok bool) {
	i, found := slices.BinarySearch(c.local, local)
	if found {
		return c.step[i], c.sync[i], true
	}
	if i == 0 || i == len(c.local) {
		return 0, 0, false
	}
	f := share(local, c.local[i-1], c.local[i])
	return mix(c.step[i-1], c.step[i], f), mix(c.sync[i-1], c.sync[i], f), true
}

// share returns where x lies between low and high, 0..1.
func share(x, low, high float64) float64 { return (x - low) / (high - low) }

// mix returns the point at share f between a and b. It is monotone in f and exact at both ends.
func mix(a, b, f float64) float64 { return float64(a*(1-f)) + float64(b*f) }
