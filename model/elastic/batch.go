package elastic

// BatchRule is how a job without batch adaptation gets its batch size: the baselines that the paper's gain is measured
// against.
type BatchRule uint8

// Rules. All but BatchPerGPU choose once, whatever the width.
const (
	BatchMin    BatchRule = iota // the smallest allowed
	BatchMax                     // the largest allowed
	BatchRandom                  // anything in between, each size as likely
	BatchBest                    // the fastest at the width the job asks for
	BatchPerGPU                  // what one GPU had, times the width: the job's samples on each GPU stay
)

// Batches are the global batch sizes a job allows, in samples, 1 <= Min <= Max.
type Batches struct{ Min, Max int }

// Fixed returns the batch size by r, with draw in [0, 1) for BatchRandom. For BatchBest, speed is the throughput with a
// batch size at the width the job asks for; candidates are the sizes tried, those within b, by rising size; the smaller
// among equals, b.Min if none is possible. BatchPerGPU starts with b.Min on one GPU. speed and candidates are not
// looked at by the others.
func (b Batches) Fixed(r BatchRule, draw float64, candidates []int, speed func(batch int) float64) int {
	switch r {
	case BatchMax:
		return b.Max
	case BatchRandom:
		return min(b.Min+int(draw*float64(b.Max-b.Min+1)), b.Max)
	case BatchBest:
		return b.best(candidates, speed)
	}
	return b.Min
}

func (b Batches) best(candidates []int, speed func(batch int) float64) int {
	size, fastest := b.Min, 0.0
	for _, c := range candidates {
		if x := speed(c); c >= b.Min && c <= b.Max && x > fastest {
			size, fastest = c, x
		}
	}
	return size
}

// At returns the batch size on so many GPUs, > 0, of a job that has a fixed one by r: the same, or per GPU, up to the
// largest allowed.
func (b Batches) At(r BatchRule, fixed, gpus int) int {
	if r == BatchPerGPU {
		return min(fixed*gpus, b.Max)
	}
	return fixed
}
