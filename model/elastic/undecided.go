package elastic

// core is what the hulls leave undecided: jobs with more than one width that a best division may give them.
type core struct {
	jobs    []int // by rising number
	widths  []corner
	from    []int   // widths of the ith job are widths[from[i]:from[i+1]], by rising width
	rows    []int64 // P of the first i jobs of the core, for the GPUs that a best division may give them
	rowFrom []int   // row i is rows[rowFrom[i]:rowFrom[i+1]]
	low     []int   // GPUs of its first cell
}

// decide sets s.widths, which are the minima, to those of the best division, and returns the price of a GPU in units.
//
// With a price p, the loss of width k of a job is what its best corner is worth above it: max(S(k') - p k') - (S(k) - p
// k) >= 0. For any division, the hulls' bound less its sum is the sum of its losses plus p times the GPUs it leaves
// free. So a division as good as the one found by walking the hulls has no loss above the latter's total, and leaves no
// more than total / p free.
//
// All of this is in float64 and only narrows the search, with a margin far above its rounding. What is left is decided
// exactly.
func (s *Solver) decide(jobs []Job, gpus, free int) (price float64) {
	h := &s.hulls
	h.build(jobs, free)
	price, left := h.divide(&s.heap, free)
	total := price * float64(left)
	for j := range jobs {
		total += loss(h.best(j, price), h.corners[h.at[j]], price)
	}
	total = total*(1+1e-9) + 2
	spare := gpus
	if price > 0 {
		spare = int(min(total/price, float64(gpus)))
	}
	s.core.collect(jobs, s.widths, h, price, total, free)
	for _, k := range s.widths {
		gpus -= k // those of the core are 0 there
	}
	s.core.fill(gpus, spare)
	s.core.trace(s.widths, gpus)
	return price
}

// loss is in units.
func loss(best, p corner, price float64) float64 {
	return float64(best.units-p.units) - float64(price*float64(best.width-p.width))
}

// collect finds the widths whose loss is at most total. A job with one such width gets it; those with several are the
// core, and get 0 for the time being.
func (c *core) collect(jobs []Job, widths []int, h *hulls, price, total float64, free int) {
	c.jobs, c.widths, c.from = c.jobs[:0], c.widths[:0], append(c.from[:0], 0)
	for j := range jobs {
		start, best := len(c.widths), h.best(j, price)
		least := widths[j]
		most := min(jobs[j].most(), least+free)
		for k := least; k <= most; k++ {
			p := corner{k, unitsOf(jobs[j].S[k])}
			if p.units > 0 && loss(best, p, price) <= total {
				c.widths = append(c.widths, p)
			}
		}
		if len(c.widths) == start+1 {
			widths[j] = c.widths[start].width
			c.widths = c.widths[:start]
			continue
		}
		widths[j] = 0
		c.jobs = append(c.jobs, j)
		c.from = append(c.from, len(c.widths))
	}
}

// of returns the widths of the ith job of the core.
func (c *core) of(i int) []corner { return c.widths[c.from[i]:c.from[i+1]] }

// fill computes the rows of the dynamic programme of Table for the core on gpus GPUs, of which at most spare stay free.
// Only cells from which the end can be reached are kept: the first i jobs get what the others leave when these have all
// their largest or all their smallest widths, and no more than they can use but for the spare.
func (c *core) fill(gpus, spare int) {
	n := len(c.jobs)
	c.low, c.rowFrom, c.rows = c.low[:0], append(c.rowFrom[:0], 0), c.rows[:0]
	least, most, taken, given := 0, 0, 0, 0
	for i := range n {
		w := c.of(i)
		least += w[0].width
		most += w[len(w)-1].width
	}
	for i := 0; i <= n; i++ {
		// least and most are sums over the jobs from i on, taken and given over those before.
		low := max(taken, gpus-most)
		high := max(min(gpus-least, given+spare), low)
		c.low = append(c.low, low)
		c.rowFrom = append(c.rowFrom, c.rowFrom[i]+high-low+1)
		c.rows = grown(c.rows, c.rowFrom[i+1])
		if i == 0 {
			clear(c.row(0))
		} else {
			c.relax(i)
		}
		if i < n {
			w := c.of(i)
			taken += w[0].width
			given += w[len(w)-1].width
			least -= w[0].width
			most -= w[len(w)-1].width
		}
	}
}

// grown returns s with length n, its elements kept.
func grown(s []int64, n int) []int64 {
	if n <= cap(s) {
		return s[:n]
	}
	return append(s[:cap(s)], make([]int64, n-cap(s))...)
}

func (c *core) row(i int) []int64 { return c.rows[c.rowFrom[i]:c.rowFrom[i+1]] }

// relax computes row i from row i-1.
func (c *core) relax(i int) {
	row, prev := c.row(i), c.row(i-1)
	fillNone(row)
	for _, w := range c.of(i - 1) {
		// Cell x of row is cell x + shift of prev.
		shift := c.low[i] - w.width - c.low[i-1]
		from, to := max(0, -shift), min(len(row), len(prev)-shift)
		if from >= to {
			continue
		}
		r := row[from:to]
		for x, p := range prev[from+shift : to+shift] {
			r[x] = max(r[x], p+w.units)
		}
	}
}

// trace sets the widths of the jobs of the core, the smaller one of the later job where there is a choice.
func (c *core) trace(widths []int, gpus int) {
	for i := len(c.jobs); i > 0; i-- {
		p, prev := c.row(i)[gpus-c.low[i]], c.row(i-1)
		for _, w := range c.of(i - 1) {
			x := gpus - w.width - c.low[i-1]
			if x >= 0 && x < len(prev) && prev[x]+w.units == p {
				widths[c.jobs[i-1]] = w.width
				gpus -= w.width
				break
			}
		}
	}
}
