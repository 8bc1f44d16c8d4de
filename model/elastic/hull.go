package elastic

// hulls holds, for each job, the corners of the upper concave hull of its row from its smallest possible width up to
// the smallest one of its largest factor, and where on it the job stands.
type hulls struct {
	corners []corner
	from    []int // corners of job j are corners[from[j]:from[j+1]]
	at      []int // corner at which job j stands
}

// corner is a point of a row.
type corner struct {
	width int
	units int64
}

// rise is the gain for each GPU from corner a to b, in units.
func rise(a, b corner) float64 { return float64(b.units-a.units) / float64(b.width-a.width) }

// build computes the hulls of rows up to free GPUs above their smallest width.
func (h *hulls) build(jobs []Job, free int) {
	h.corners, h.from, h.at = h.corners[:0], append(h.from[:0], 0), h.at[:0]
	for j := range jobs {
		start := len(h.corners)
		h.at = append(h.at, start)
		h.add(&jobs[j], start, free)
		h.from = append(h.from, len(h.corners))
	}
}

// add appends the corners of one row. Points on an edge between two corners are no corners, as far as rounding shows.
func (h *hulls) add(job *Job, start, free int) {
	least, _ := job.Least()
	most := min(job.most(), least+free)
	for k := least; k <= most; k++ {
		p := corner{k, unitsOf(job.S[k])}
		n := len(h.corners)
		if p.units == 0 || n > start && p.units <= h.corners[n-1].units {
			continue
		}
		for ; n >= start+2 && rise(h.corners[n-2], h.corners[n-1]) <= rise(h.corners[n-1], p); n-- {
			h.corners = h.corners[:n-1]
		}
		h.corners = append(h.corners, p)
	}
}

// step returns the gain for each GPU of job j's next edge, and its length; 0 at the end.
func (h *hulls) step(j int) (gain float64, gpus int) {
	i := h.at[j]
	if i+1 >= h.from[j+1] {
		return 0, 0
	}
	return rise(h.corners[i], h.corners[i+1]), h.corners[i+1].width - h.corners[i].width
}

// divide walks all jobs up their hulls, the steepest edge first, until free GPUs are gone or no one gains. Edges that
// do not fit are left out, and so is what is above them. It returns the price of a GPU, the gain of the first edge that
// did not fit (0: all did), and the GPUs left.
func (h *hulls) divide(q *heap, free int) (price float64, left int) {
	*q = (*q)[:0]
	for j := range h.at {
		if gain, _ := h.step(j); gain > 0 {
			*q = append(*q, offer{gain, j})
		}
	}
	q.order()
	for len(*q) > 0 {
		next := (*q)[0]
		_, gpus := h.step(next.job)
		if gpus > free {
			price = max(price, next.gain)
			q.renew(0)
			continue
		}
		free -= gpus
		h.at[next.job]++
		gain, _ := h.step(next.job)
		q.renew(gain)
	}
	return price, free
}

// best returns the corner of job j that is worth most at a price, less what its GPUs cost.
func (h *hulls) best(j int, price float64) corner {
	lo, hi := h.from[j], h.from[j+1]-1
	for lo < hi && rise(h.corners[lo], h.corners[lo+1]) > price {
		lo++
	}
	return h.corners[lo]
}
