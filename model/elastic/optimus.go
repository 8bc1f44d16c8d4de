package elastic

// Optimus appends to dst the widths of Optimus' marginal gains: in the order of arrival each job gets its smallest
// possible width, or 0 if that is not left; then one step more, to the next possible width, to the job whose remaining
// time falls most for each GPU of the step,
//
//	(left/S(k) - left/S(k')) / (k' - k)
//
// the first among equals, until nothing fits or no one gains. left[j] is as in AFSL. gains is scratch: it is used if
// large enough, nil will do.
//
// Source: Peng et al., "Optimus", EuroSys 2018, as the baseline of Pollux's released simulator has it (specification
// boa.md, section 5.4). Steps over holes are ours.
func Optimus(dst []int, jobs []Job, left []float64, gpus int, gains []float64) []int {
	from := len(dst)
	for j := range jobs {
		least, ok := jobs[j].Least()
		if !ok || least > gpus {
			least = 0
		}
		gpus -= least
		dst = append(dst, least)
	}
	widths := dst[from:]
	gains = gains[:0]
	for j := range jobs {
		gains = append(gains, Saving(&jobs[j], left[j], widths[j]))
	}
	for gpus > 0 {
		top := -1
		for j, g := range gains {
			if g > 0 && stepOf(&jobs[j], widths[j]) <= gpus && (top < 0 || g > gains[top]) {
				top = j
			}
		}
		if top < 0 {
			break
		}
		step := stepOf(&jobs[top], widths[top])
		widths[top] += step
		gpus -= step
		gains[top] = Saving(&jobs[top], left[top], widths[top])
	}
	return dst
}

// Saving returns the seconds that a job's next step takes off its remaining time, for each GPU; 0 if it has no GPUs or
// cannot grow.
func Saving(j *Job, left float64, width int) float64 {
	if width == 0 {
		return 0
	}
	step := stepOf(j, width)
	if step == 0 {
		return 0
	}
	return (left/j.S[width] - left/j.S[width+step]) / float64(step)
}
