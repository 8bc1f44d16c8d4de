package tiresias

import (
	"cmp"
	"math"
	"slices"
)

// The twins restate the schedules of the released simulator that Run does not cover, slowly and plainly, so that all
// recorded outcomes are checked against something in this package.
// Reference: Gu et al., NSDI'19, released simulator, commit 959f9b0, schedules fifo, fjf, sjf, shortest, shortest-gpu.

// twinNodes hands out GPUs. A single node of all GPUs is the counting placement, more are the yarn placement on one
// switch. CPUs and memory are left out: they bind in no recorded run.
type twinNodes struct {
	perNode int
	free    []int
}

func twinCluster(g golden) *twinNodes {
	c := &twinNodes{perNode: g.gpus}
	if g.yarn {
		c.perNode = g.gpusPerNode
	}
	for range g.gpus / c.perNode {
		c.free = append(c.free, c.perNode)
	}
	return c
}

// place takes w GPUs, as many whole idle nodes as w fills and the rest on one other node, first ones first. It returns
// the GPUs taken per node, nil if there is no such place.
func (c *twinNodes) place(w int) []int {
	taken := make([]int, len(c.free))
	take := func(n int) bool {
		i := slices.IndexFunc(c.free, func(free int) bool { return free >= n })
		if i >= 0 {
			c.free[i] -= n
			taken[i] += n
		}
		return i >= 0
	}
	for ; w > 0; w -= c.perNode {
		if !take(min(w, c.perNode)) {
			c.release(taken)
			return nil
		}
	}
	return taken
}

func (c *twinNodes) release(taken []int) {
	for i, n := range taken {
		c.free[i] += n
	}
}

// twinQueue plays fifo, or with skip fjf: first come first served, jobs that do not fit passed over.
func twinQueue(jobs []Job, c *twinNodes, skip bool) []Outcome {
	out, order := twinBegin(jobs)
	taken := make([][]int, len(jobs))
	var pending, running []int
	for len(order) > 0 || len(running) > 0 {
		now := twinNext(jobs, out, order, running)
		running = slices.DeleteFunc(running, func(i int) bool {
			out[i].Finished = out[i].End == now
			if out[i].Finished {
				c.release(taken[i])
			}
			return out[i].Finished
		})
		for ; len(order) > 0 && jobs[order[0]].Submit == now; order = order[1:] {
			pending = append(pending, order[0])
		}
		stopped := false
		pending = slices.DeleteFunc(pending, func(i int) bool {
			if stopped {
				return false
			}
			if taken[i] = c.place(jobs[i].GPUs); taken[i] == nil {
				stopped = !skip
				return false
			}
			out[i].Start, out[i].End, out[i].Pending = now, now+jobs[i].Duration, now-jobs[i].Submit
			running = append(running, i)
			return true
		})
	}
	return out
}

// twinKeys are the sort keys of the preemptive schedules with full knowledge; smaller first. left: remaining seconds.
var twinKeys = map[string]func(j Job, left int64) int64{
	"sjf":          func(j Job, _ int64) int64 { return int64(j.GPUs) },
	"shortest":     func(_ Job, left int64) int64 { return left },
	"shortest-gpu": func(j Job, left int64) int64 { return left * int64(j.GPUs) },
}

// twinShortest sorts all jobs by key at each event, in place and stable, and runs those that fit, in order.
func twinShortest(jobs []Job, gpus int, key func(Job, int64) int64) []Outcome {
	out, order := twinBegin(jobs)
	left, on := make([]int64, len(jobs)), make([]bool, len(jobs))
	var runnable, running []int
	last := int64(0)
	for len(order) > 0 || len(running) > 0 {
		now := twinNext(jobs, out, order, running)
		for _, i := range runnable {
			if on[i] {
				left[i] -= now - last
			} else {
				out[i].Pending += now - last
			}
		}
		last = now
		runnable = slices.DeleteFunc(runnable, func(i int) bool {
			out[i].Finished = on[i] && out[i].End == now
			return out[i].Finished
		})
		for ; len(order) > 0 && jobs[order[0]].Submit == now; order = order[1:] {
			runnable = append(runnable, order[0])
			left[order[0]] = jobs[order[0]].Duration
		}
		slices.SortStableFunc(runnable, func(a, b int) int {
			return cmp.Compare(key(jobs[a], left[a]), key(jobs[b], left[b]))
		})
		running = running[:0]
		free := gpus
		for _, i := range runnable {
			fits := jobs[i].GPUs <= free
			if fits {
				free -= jobs[i].GPUs
				running = append(running, i)
				out[i].End = now + left[i]
			}
			if fits && out[i].Start < 0 {
				out[i].Start = now
			}
			if on[i] && !fits {
				out[i].Preemptions++
			}
			on[i] = fits
		}
	}
	return out
}

// twinBegin returns empty outcomes and the jobs in order of submission.
func twinBegin(jobs []Job) (out []Outcome, order []int) {
	for i, j := range jobs {
		out = append(out, Outcome{ID: j.ID, Start: -1, End: -1})
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[a].Submit, jobs[b].Submit) })
	return out, order
}

// twinNext is the time of the next arrival or end.
func twinNext(jobs []Job, out []Outcome, order, running []int) int64 {
	now := int64(math.MaxInt64)
	if len(order) > 0 {
		now = jobs[order[0]].Submit
	}
	for _, i := range running {
		now = min(now, out[i].End)
	}
	return now
}
