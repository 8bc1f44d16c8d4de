package pal

import "math"

// addUp adds x > 0 to s >= 0 until the sum is goal or more, but not more than limit times. It returns the sum, rounded
// after each addition, and how many times it added.
//
// It takes O(log(goal/s)) steps. While the sums stay between two powers of two, their last bit has the same weight u,
// and rounding s+x to a multiple of u changes s by the same amount each time, except that a tie, x an odd multiple of
// u/2, may go one way for odd s/u and the other way for even. After one tie s/u is even, and stays so. So the change
// from the second sum that starts and ends there on is constant, and many can be made at once without error.
func addUp(s, x, goal float64, limit int64) (sum float64, n int64) {
	for n < limit && s < goal {
		before := s + x
		n++
		if n == limit || before >= goal {
			return before, n
		}
		after := before + x
		n++
		if after == before {
			return after, limit
		}
		same := exponent(s) == exponent(after)
		if s = after; !same || s >= goal {
			continue
		}
		change := after - before
		room := min(goal, math.Ldexp(1, exponent(after))) - after
		// Divide down: to stop below the goal and the next power of two is never wrong.
		k := min(limit-n, int64(math.Min(room/change, maxRounds))-1)
		if k > 0 {
			s += float64(k) * change
			n += k
		}
	}
	return s, n
}

// exponent is e with 2^(e-1) <= x < 2^e.
func exponent(x float64) int {
	_, e := math.Frexp(x)
	return e
}
