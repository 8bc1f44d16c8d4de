package interference

import "github.com/trainyard/trainyard/sched"

// generic is the slow-down of sets by size, from EaCO's tables 1 to 4: the means of the sets of 2, of 3 and of 4 jobs.
var generic = [...]float64{1: 1, 2: 1.035, 3: 1.083, 4: 1.245}

// Generic returns the slow-down of each of n jobs that take turns on their GPUs, where nothing more is known. Beyond
// four the GPUs are taken to be busy all the time (they were to 97 % with four), so that each job's share falls as 1/n.
func Generic(n int) float64 {
	if last := len(generic) - 1; n > last {
		return generic[last] * float64(n) / float64(last)
	}
	return generic[max(n, 1)]
}

// byUse is the mean normalised speed of pairs by the sum of their uses alone, in steps of 0.25 from 0.5 on: aggregates
// of 1,388 pairs published with Lucid. The step from 0.50 to 0.75 was measured as 1.01, which is noise.
var byUse = [...]float64{1, .970, .926, .843, .752, .699}

// ByUse returns the slow-down of jobs that share GPUs by the sum of their uses alone, 1 = one GPU's whole time. Beyond
// 2, where nothing was measured, it grows in proportion.
func ByUse(sum float64) float64 {
	switch {
	case !(sum > .75):
		return 1
	case sum > 2:
		return sum / 2 / byUse[len(byUse)-1]
	}
	step := 1
	for step < len(byUse)-1 && sum > .75+.25*float64(step) {
		step++
	}
	return 1 / byUse[step]
}

// prior returns the slow-down of member i of set where nothing was measured:
//
//   - time-slicing by size (Generic);
//   - MPS, under which kernels run next to each other, by the sum of uses (ByUse), or by size if a use is unknown;
//   - MIG, under which each has one n-th of the GPU: as long as its own use fits into that it is not slowed; an unknown
//     use counts as all of the GPU. [Our assumption: no table is known to us.]
func prior(how sched.Mechanism, set []Member, i int) float64 {
	n, sum, known := len(set), 0.0, true
	for _, m := range set {
		sum += m.Use
		known = known && m.Use > 0
	}
	switch {
	case n == 1:
		return 1
	case how == sched.MIG:
		use := set[i].Use
		if use == 0 {
			use = 1
		}
		return max(1, use*float64(n))
	case how == sched.MPS && known:
		return ByUse(sum)
	}
	return Generic(n)
}
