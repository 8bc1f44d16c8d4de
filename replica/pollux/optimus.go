package pollux

import (
	"cmp"
	"slices"
)

// marginal is the artifact's Optimus, with an oracle for the time of steps: each job gets one GPU in the order of the
// workload; then one more goes to the job whose remaining iterations gain most time by it, the first among equals,
// while someone gains. Jobs of unchanged width keep their GPUs, the others are placed by rising width.
type marginal struct{}

func (m *marginal) divide(r *run) ([][]share, error) {
	widths := m.widths(r)
	keeps := func(i int) bool { return r.active[i].gpus == widths[i] }
	free := r.freeGPUs(keeps)
	order := make([]int, len(widths))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(widths[a], widths[b]) })
	held := make([][]share, len(widths))
	for _, i := range order {
		if keeps(i) {
			held[i] = r.active[i].held
		} else {
			held[i] = take(free, widths[i])
		}
	}
	return held, nil
}

// widths gives GPUs to the active jobs.
func (m *marginal) widths(r *run) []int {
	left := r.nodes * r.GPUsPerNode
	widths, gains := make([]int, len(r.active)), make([]float64, len(r.active))
	for i, j := range r.active {
		if left == 0 {
			break
		}
		widths[i], left = 1, left-1
		if left > 0 {
			gains[i] = m.gain(r, j, 1)
		}
	}
	for left > 0 {
		top := 0
		for i, g := range gains {
			if g > gains[top] {
				top = i
			}
		}
		if gains[top] <= 0 {
			break
		}
		widths[top]++
		gains[top] = m.gain(r, r.active[top], widths[top])
		left--
	}
	return widths
}

// gain returns the seconds that one GPU more would save; 0 if there can be none.
func (m *marginal) gain(r *run, j *job, gpus int) float64 {
	limit := j.Batch / j.App.MinPerGPU
	if j.App.OneGPU {
		limit = 1
	}
	if gpus+1 > limit {
		return 0
	}
	now, ok := stepTime(r, j, gpus)
	then, okThen := stepTime(r, j, gpus+1)
	if !ok || !okThen {
		return 0
	}
	return (now - then) * remaining(j)
}

// remaining returns the iterations from the end of the epoch that the job is in to its last; 1 in the last.
func remaining(j *job) float64 {
	last := len(j.ends) - 1
	if j.epoch >= last {
		return 1
	}
	s := j.App.Statistics
	return s.Updates(last, j.Batch) - s.Updates(j.epoch, j.Batch)
}

// stepTime returns the seconds of an update on as few nodes as possible, the last one holding the rest. One GPU makes
// two micro-batches whatever the batch size, as released.
func stepTime(r *run, j *job, gpus int) (seconds float64, ok bool) {
	var placement []int
	for left := gpus; left > 0; left -= r.GPUsPerNode {
		placement = append(placement, min(left, r.GPUsPerNode))
	}
	local, accum := j.App.split(j.Batch, gpus, true)
	local = min(local, j.App.Max/(gpus*(accum+1)))
	step, sync, ok := j.App.Steps.Placed(placement, local)
	return step + float64((step-sync)*float64(accum)), ok
}
