package gittins

import (
	"fmt"
	"math"

	"github.com/trainyard/trainyard/model/dist"
)

// Index returns the Gittins index at attained service a with quantum delta, by its definition in O(n):
//
//	G(a) = P(S-a <= delta | S > a) / E[min(S-a, delta) | S > a]
//
// where S is the size of a job drawn from e. It is 0 where no sample is larger than a: of a job that has outlived the
// whole sample nothing is known, and it ranks last. It is 0 too where nothing finishes within the quantum.
//
// a must be >= 0, delta > 0; delta may be +Inf. Anything else panics.
//
// Source: Gu et al., NSDI'19, section 3 (2D-Gittins).
func Index(e *dist.Empirical, a, delta float64) float64 {
	check(a, delta)
	done, spent := 0, 0.0
	for _, s := range e.Sizes() {
		if s <= a {
			continue
		}
		// The number of samples above a divides both the probability and the expectation, and cancels.
		spent += min(s-a, delta)
		if s-a <= delta {
			done++
		}
	}
	if done == 0 {
		return 0
	}
	return float64(done) / spent
}

// SupIndex returns the supremum of Index(e, a, delta) over all delta > 0, in O(n): the index when the quantum is
// free. It is 0 where no sample is larger than a. a must be >= 0, otherwise it panics.
//
// Between two samples the number of jobs done stays and the service spent on them grows with the quantum, so the
// supremum is reached at a quantum that ends exactly at a sample.
//
// Source: Gittins, "Bandit processes and dynamic allocation indices", 1979.
func SupIndex(e *dist.Empirical, a float64) float64 {
	check(a, math.Inf(1))
	above := e.Sizes()[e.AtMost(a):]
	best, finished := 0.0, 0.0
	for i, s := range above {
		finished += s - a
		spent := finished + float64(float64(len(above)-i-1)*(s-a))
		best = max(best, float64(i+1)/spent)
	}
	return best
}

func check(a, delta float64) {
	if !(a >= 0) {
		panic(fmt.Sprintf("gittins: attained service %v, want >= 0", a))
	}
	checkDelta(delta)
}

func checkDelta(delta float64) {
	if !(delta > 0) {
		panic(fmt.Sprintf("gittins: quantum %v, want > 0", delta))
	}
}
