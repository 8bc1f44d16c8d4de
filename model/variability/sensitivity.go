package variability

import (
	"math"
	"slices"
)

// Seen is a time that an iteration of a job took on one GPU alone, or on a gang whose slowest GPU it was.
type Seen struct {
	GPU     int     // number in the table of scores
	Seconds float64 // > 0
}

// MinSeen is the number of different GPUs from which ClassOf infers a class.
const MinSeen = 3

// ClassOf infers the class of a job without a profile from how its times differ between GPUs, and whether they suffice:
// if not it is 0, the most sensitive.
//
// If the job were of class c, its time on GPU g would be some nominal time times PM[c][g], so that log(seconds) -
// log(PM) was the same on all. The misfit of c is the mean distance of these, the median for each GPU, from their
// median; factors common to all scores of a class cancel. Classes whose scores on these GPUs differ, likewise, by less
// than 0.1 % or a tenth of the least misfit cannot be distinguished: of those like the best the most sensitive is
// reported, provided that there are others and the misfit of each is more than twice as large, and larger by 0.1 %.
//
// The rule is ours: the paper profiles every application. It needs runs on GPUs that differ in the classes in question.
func (s *Scores) ClassOf(seen []Seen) (class int, reported bool, err error) {
	gpus, logs, err := s.logTimes(seen)
	if err != nil || len(gpus) < MinSeen {
		return 0, false, err
	}
	misfits := make([]float64, len(s.Classes))
	best := 0
	for c := range s.Classes {
		misfits[c] = s.misfit(c, gpus, logs)
		if misfits[c] < misfits[best] {
			best = c
		}
	}
	const noise = 0.001
	same, limit := max(noise, misfits[best]/10), 2*misfits[best]+noise
	class = best
	for c := range s.Classes {
		switch alike := s.apart(c, best, gpus) <= same; {
		case alike:
			class = min(class, c)
		case misfits[c] <= limit:
			return 0, false, nil
		default:
			reported = true
		}
	}
	if !reported {
		return 0, false, nil
	}
	return class, true, nil
}

// logTimes returns the GPUs that were seen, ascending, and the median of the logarithms of the times on each.
func (s *Scores) logTimes(seen []Seen) (gpus []int, logs []float64, err error) {
	sorted := slices.Clone(seen)
	slices.SortStableFunc(sorted, func(a, b Seen) int { return a.GPU - b.GPU })
	var times []float64
	for i, x := range sorted {
		if x.GPU < 0 || x.GPU >= len(s.GPUs) || !(x.Seconds > 0 && x.Seconds <= maxPerf) {
			return nil, nil, s.fail("%v seconds on GPU %d, want a number > 0 and a GPU in 0..%d", x.Seconds, x.GPU,
				len(s.GPUs)-1)
		}
		times = append(times, math.Log(x.Seconds))
		if i+1 == len(sorted) || sorted[i+1].GPU != x.GPU {
			gpus, logs = append(gpus, x.GPU), append(logs, median(times))
			times = times[:0]
		}
	}
	return gpus, logs, nil
}

// misfit is how badly class c explains the logarithms of times on gpus.
func (s *Scores) misfit(c int, gpus []int, logs []float64) float64 {
	rest := make([]float64, len(gpus))
	for i, g := range gpus {
		rest[i] = logs[i] - math.Log(s.PM[c][g])
	}
	return spread(rest)
}

// apart is how much the scores of two classes on gpus differ, common factors aside.
func (s *Scores) apart(c, d int, gpus []int) float64 {
	ratio := make([]float64, len(gpus))
	for i, g := range gpus {
		ratio[i] = math.Log(s.PM[c][g] / s.PM[d][g])
	}
	return spread(ratio)
}

// spread is the mean distance from the median.
func spread(values []float64) float64 {
	mid, sum := median(values), 0.0
	for _, v := range values {
		sum += math.Abs(v - mid)
	}
	return sum / float64(len(values))
}
