// Package gittinstest computes the Gittins index by its definition, slowly: what tests hold the tables of package
// gittins to.
package gittinstest

import (
	"fmt"

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

func check(a, delta float64) {
	if !(a >= 0) {
		panic(fmt.Sprintf("gittins: attained service %v, want >= 0", a))
	}
	if !(delta > 0) {
		panic(fmt.Sprintf("gittins: quantum %v, want > 0", delta))
	}
}
