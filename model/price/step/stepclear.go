package step

import "math"

// Clearing divides GPUs of one type. Its zero value is ready; memory is used again from call to call.
type Clearing struct {
	curves []Curve
	widths []int
	queue  bids
	missed []float64
}

// Cleared is the outcome. Its slices are valid until the next call.
type Cleared struct {
	Widths []int   // by job; 0 = none
	Price  float64 // of a GPU now, >= the floor
	Short  bool    // some step that is worth more than Price did not fit
}

// Clear takes steps by falling price as long as they are worth the floor; ties go to the job that comes first in jobs.
// Of a step that does not fit the job is offered what is left: the hull from its present width up to that. If it has
// none, the job takes no more.
//
// The price is the largest of a step not taken that is not above the smallest of a step taken.
func (c *Clearing) Clear(m Market, jobs []Job, room int) Cleared {
	for len(c.curves) < len(jobs) {
		c.curves = append(c.curves, Curve{})
	}
	c.widths, c.queue, c.missed = c.widths[:0], c.queue[:0], c.missed[:0]
	for i := range jobs {
		c.curves[i].Set(&jobs[i], m)
		c.widths = append(c.widths, 0)
		if s, ok := c.curves[i].Next(0, len(jobs[i].Speed)); ok {
			c.queue = append(c.queue, bid{s, i})
		}
	}
	c.queue.heap()
	least := c.serve(m.Floor, room)
	out := Cleared{Widths: c.widths, Price: m.Floor}
	for _, nu := range c.missed {
		if nu > least {
			out.Short = true
		} else {
			out.Price = max(out.Price, nu)
		}
	}
	return out
}

// Curve returns job i as of the last Clear.
func (c *Clearing) Curve(i int) *Curve { return &c.curves[i] }

// serve takes steps and returns the smallest price of one taken.
func (c *Clearing) serve(floor float64, room int) (least float64) {
	least = math.Inf(1)
	for len(c.queue) > 0 {
		b := &c.queue[0]
		if b.Price < floor {
			return least
		}
		i, most := b.job, len(c.curves[b.job].speed)
		if more := b.To - b.From; more <= room {
			room -= more
			c.widths[i] = b.To
			least = min(least, b.Price)
		} else {
			c.missed = append(c.missed, b.Price)
			most = c.widths[i] + room
		}
		if s, ok := c.curves[i].Next(c.widths[i], most); ok {
			s.Price = min(s.Price, b.Price) // rounding must not turn two steps round
			b.Step = s
			c.queue.sink(0)
		} else {
			c.queue.pop()
		}
	}
	return least
}

// bid is the next step of a job.
type bid struct {
	Step
	job int
}

// bids is a heap, the highest price first, ties by job.
type bids []bid

func (b *bid) before(o *bid) bool {
	if b.Price != o.Price {
		return b.Price > o.Price
	}
	return b.job < o.job
}

// heap orders q.
func (q bids) heap() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
}

// sink moves the bid at i, which may come too early, down to its place.
func (q bids) sink(i int) {
	for {
		first := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < len(q) && q[c].before(&q[first]) {
				first = c
			}
		}
		if first == i {
			return
		}
		q[i], q[first] = q[first], q[i]
		i = first
	}
}

// pop takes the first bid away.
func (q *bids) pop() {
	last := len(*q) - 1
	(*q)[0] = (*q)[last]
	*q = (*q)[:last]
	q.sink(0)
}
