package elastic

import "math"

// Answer is a division of GPUs.
type Answer struct {
	Sum    float64 // of the scaling factors, P(J, K)
	Widths []int   // of each job, in the order of the jobs; valid until the Solver's next call
	Free   int     // GPUs given to no one
	// what a GPU is worth: the gain by one more where rows are concave, else the slope of their hulls there
	Price float64
}

// Solver divides GPUs as Table does, widths included, without filling the whole table. The zero value is ready for use.
// It keeps its memory: a call allocates only if no call before was as large.
//
// Where every row is concave (each GPU adds no more than the one before), GPUs go one by one to who gains most, in
// O(GPUs × log jobs). Else the rows' concave hulls are divided in the same way, which gives a price per GPU and a bound
// of the sum. What a width falls short of at that price is a loss that no better division can afford beyond the
// distance of the bound from the best division found so far; the few widths that are left go through the dynamic
// programme. At worst, where rows are all steps and ties, that is the whole table again.
type Solver struct {
	widths []int
	heap   heap
	hulls  hulls
	core   core
}

// Solve divides gpus among jobs, each of which gets at least its smallest possible width; false if that is not
// possible. No division has a larger sum; of those with an equal sum it is the one of Table.Widths.
func (s *Solver) Solve(jobs []Job, gpus int) (Answer, bool) {
	checkSize(jobs, gpus)
	free, ok := s.minima(jobs, gpus)
	if !ok {
		return Answer{}, false
	}
	price := 0.0
	if concave(jobs, free) {
		free, price = s.grow(jobs, free)
	} else {
		price = s.decide(jobs, gpus, free)
		free = gpus
		for _, k := range s.widths {
			free -= k
		}
	}
	sum := int64(0)
	for j, k := range s.widths {
		sum += unitsOf(jobs[j].S[k])
	}
	return Answer{Sum: factorOf(sum), Widths: s.widths, Free: free, Price: price * unit}, true
}

// minima gives each job its smallest possible width, and returns what is left.
func (s *Solver) minima(jobs []Job, gpus int) (free int, ok bool) {
	s.widths = s.widths[:0]
	for j := range jobs {
		least, possible := jobs[j].Least()
		if gpus -= least; !possible || gpus < 0 {
			return 0, false
		}
		s.widths = append(s.widths, least)
	}
	return gpus, true
}

// concave reports whether no row rises by more than it did the width before, nor has a hole, as far as free GPUs beyond
// the minimum reach.
func concave(jobs []Job, free int) bool {
	for j := range jobs {
		least, _ := jobs[j].Least()
		most := min(jobs[j].most(), least+free)
		last, gain := unitsOf(jobs[j].S[least]), int64(math.MaxInt64)
		for _, x := range jobs[j].S[least+1 : most+1] {
			s := unitsOf(x)
			if s == 0 || s-last > gain {
				return false
			}
			last, gain = s, s-last
		}
	}
	return true
}

// grow gives free GPUs, one by one, to the job that gains most by it, the first of several, while there is a gain. It
// returns what is left, and the gain of the next one.
func (s *Solver) grow(jobs []Job, free int) (left int, price float64) {
	s.heap = s.heap[:0]
	for j, k := range s.widths {
		if g := gainOf(&jobs[j], k); g > 0 {
			s.heap = append(s.heap, offer{float64(g), j})
		}
	}
	s.heap.order()
	for ; free > 0 && len(s.heap) > 0; free-- {
		j := s.heap[0].job
		s.widths[j]++
		s.heap.renew(float64(gainOf(&jobs[j], s.widths[j])))
	}
	if len(s.heap) > 0 {
		price = s.heap[0].gain
	}
	return free, price
}

// gainOf returns what one GPU more than k adds, in units; 0 beyond the last. It is below 2^53, so exact as a float64.
func gainOf(j *Job, k int) int64 {
	if k >= j.most() {
		return 0
	}
	return unitsOf(j.S[k+1]) - unitsOf(j.S[k])
}
