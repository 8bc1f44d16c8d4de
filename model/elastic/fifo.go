package elastic

// FIFO appends to dst the widths of elastic FIFO: in the order of arrival each job gets its smallest possible width, or
// 0 if that is not left, and the next is looked at; then, round after round in the same order, each job that has any
// grows by one step, to its next possible width, until nothing is left that fits. Speeds are not looked at beyond what
// is possible: a job grows even where that makes it slower.
//
// Source: heyfey/vodascheduler, pkg/algorithm/elastic_fifo.go. Deviation: its job that got nothing may grow from 0 by
// ones later, below its minimum; ours stays at 0.
func FIFO(dst []int, jobs []Job, gpus int) []int {
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
	for grew := true; grew; {
		grew = false
		for j := range jobs {
			if widths[j] == 0 {
				continue
			}
			if next := jobs[j].next(widths[j]); next <= jobs[j].most() && next-widths[j] <= gpus {
				gpus -= next - widths[j]
				widths[j] = next
				grew = true
			}
		}
	}
	return dst
}
