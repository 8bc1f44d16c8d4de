package elastic

import (
	"fmt"
	"math"
)

// Bounds that keep all sums inside int64. They are far beyond any cluster.
const (
	MaxJobs   = 1 << 14
	MaxGPUs   = 1 << 20
	MaxFactor = 1 << 17
)

// Job is what dividing needs to know of a job.
type Job struct {
	// S[k] is the scaling factor on k GPUs: throughput over that on one GPU, 0 <= S[k] <= MaxFactor. 0 = not possible.
	// S[0] is not looked at, widths from len(S) on are not possible. It is read only.
	S        []float64
	Min, Max int // bounds of the width, 1 <= Min <= Max; a Max beyond S means all of S
}

// Least returns the smallest possible width, k_min, and false if there is none: a hole in S is stepped over.
func (j *Job) Least() (width int, ok bool) {
	k := j.next(j.Min - 1)
	return k, k <= j.most()
}

// most returns the largest width worth a look.
func (j *Job) most() int { return min(j.Max, len(j.S)-1) }

// next returns the smallest possible width above k, or one above most.
func (j *Job) next(k int) int {
	most := j.most()
	k++
	for k <= most && unitsOf(j.S[k]) == 0 {
		k++
	}
	return k
}

// unit is the grain of all sums, about 1e-9 of one GPU's throughput: finer than any measurement, coarse enough for
// exact sums.
const unit = 1.0 / (1 << 30)

// unitsOf counts s in units. Factors below half a unit are none.
func unitsOf(s float64) int64 { return int64(math.RoundToEven(s * (1 << 30))) }

// factorOf is the reverse.
func factorOf(units int64) float64 { return float64(units) * unit }

// checkSize panics where sums could overflow.
func checkSize(jobs []Job, gpus int) {
	if len(jobs) > MaxJobs || gpus < 0 || gpus > MaxGPUs {
		panic(fmt.Sprintf("elastic: %d jobs on %d GPUs, want at most %d on 0..%d", len(jobs), gpus, MaxJobs, MaxGPUs))
	}
}
