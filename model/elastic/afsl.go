package elastic

import "math"

// AFSL gives so many GPUs as AFS-L does, beyond the widths that jobs have, 0 each as published. left[j] is what job j
// has still to do, in seconds on one GPU (more exactly: left/S[k] is the time on k GPUs), > 0. GPUs are given one step
// after the other to the job at the top, which a walk over all jobs in the order of arrival finds by comparing the top
// so far with each:
//
//   - Neither has GPUs: the one with less left, the later among equals.
//
//   - Else let a be the one that would end first with what it has (a job without GPUs never ends; the later among
//     equals) and b the other. The GPU goes to b if b's relative gain, seen from after it, is larger than a's, seen
//     from before it:
//
//     (S_b(m_b+1) - S_b(m_b)) / S_b(m_b+1)  >  (S_a(m_a+1) - S_a(m_a)) / S_a(m_a)
//
// What b would lose by waiting until a has ended is weighed against what a gains now, as if no other job came: short
// jobs first, but not at any price.
//
// Source: Hwang, Kim, Kim, Shin, Park, "Elastic Resource Sharing for Distributed Deep Learning", NSDI 2021, algorithm
// AFS-L, as implemented in heyfey/vodascheduler, pkg/algorithm/afsl.go (we had not the paper's text beyond its
// abstract). Deviations: that code compares lengths at the width of the top for both, ours each at its own; a job's
// first step is its smallest possible width, a step over a hole is several GPUs, and gains count for each GPU of a
// step; a step that does not fit is none.
func AFSL(widths []int, jobs []Job, left []float64, gpus int) {
	for gpus > 0 {
		top := -1
		for j := range jobs {
			if step := stepOf(&jobs[j], widths[j]); step == 0 || step > gpus {
				continue
			}
			if top < 0 || overtakes(jobs, left, widths, top, j) {
				top = j
			}
		}
		if top < 0 {
			break
		}
		step := stepOf(&jobs[top], widths[top])
		widths[top] += step
		gpus -= step
	}
}

// stepOf returns how many GPUs a job of a width needs to grow, 0 if it cannot.
func stepOf(j *Job, width int) int {
	next := j.next(max(width, j.Min-1))
	if next > j.most() {
		return 0
	}
	return next - width
}

// overtakes reports whether job j goes before job top.
func overtakes(jobs []Job, left []float64, widths []int, top, j int) bool {
	if widths[top] == 0 && widths[j] == 0 {
		return left[j] <= left[top]
	}
	a, b := top, j
	if length(&jobs[j], left[j], widths[j]) <= length(&jobs[top], left[top], widths[top]) {
		a, b = j, top
	}
	now, _ := Gains(&jobs[a], widths[a])
	_, later := Gains(&jobs[b], widths[b])
	winner := a
	if later > now {
		winner = b
	}
	return winner == j
}

// length is the time to the end at a width.
func length(j *Job, left float64, width int) float64 {
	if width == 0 {
		return math.Inf(1)
	}
	return left / j.S[width]
}

// Gains returns the relative gain that AFSL sees in a job's next step from a width, for each GPU of the step: over its
// speed before the step, +Inf for a job without GPUs, and over that after it; 0 where it cannot grow.
func Gains(j *Job, width int) (now, later float64) {
	step := stepOf(j, width)
	if step == 0 {
		return 0, 0
	}
	before, after := 0.0, j.S[width+step]
	if width > 0 {
		before = j.S[width]
	}
	return (after - before) / before / float64(step), (after - before) / after / float64(step)
}
