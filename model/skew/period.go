package skew

import (
	"cmp"
	"fmt"
	"slices"
)

// Bounds of the search for a period.
const (
	foreignShare = 100 // at most one message in so many may be foreign
	maxAnchors   = 64  // message sizes tried as the mark of an iteration
)

// iteration returns the message sizes of one iteration, from the first message of sizes on where none is foreign, or
// else from the mark of an iteration on. sizes is what one process sent in many iterations, the first and last cut
// anywhere.
func iteration(sizes []int64) ([]int64, error) {
	period := smallestPeriod(sizes)
	if 2*period > len(sizes) {
		block := noisyIteration(sizes)
		if block == nil {
			return nil, fmt.Errorf("the sizes of %d messages do not repeat, want two whole iterations, "+
				"each tensor as one message, and at most 1 foreign message in %d", len(sizes), foreignShare)
		}
		return block, nil
	}
	switch {
	case period > MaxTensors:
		return nil, fmt.Errorf("%d messages in each iteration, want at most %d", period, MaxTensors)
	case period == 1:
		return nil, fmt.Errorf("all %d messages are of %d bytes, which does not show where an iteration ends, want "+
			"lines %s",
			len(sizes), sizes[0], wantedTensor)
	}
	return sizes[:period], nil
}

// smallestPeriod returns the smallest p > 0 with sizes[i] == sizes[i+p] wherever both exist; len(sizes) always is one.
//
// Source: Knuth, Morris and Pratt, "Fast pattern matching in strings", 1977: the length minus the longest proper
// border.
func smallestPeriod(sizes []int64) int {
	border := make([]int32, len(sizes)+1) // border[n] is the longest proper border of the first n
	for n, b := 1, int32(0); n < len(sizes); n++ {
		for b > 0 && sizes[n] != sizes[b] {
			b = border[b]
		}
		if sizes[n] == sizes[b] {
			b++
		}
		border[n+1] = b
	}
	return len(sizes) - int(border[len(sizes)])
}

// noisyIteration finds an iteration among foreign messages, or returns nil. It tries sizes as the mark at which an
// iteration starts, largest first, since foreign messages are mostly small and a large tensor is often the only one of
// its size. The most frequent stretch between two marks is the iteration, if the log repeats it.
func noisyIteration(sizes []int64) []int64 {
	for _, anchor := range anchors(sizes) {
		from, to := commonStretch(sizes, anchor)
		if n := to - from; n < 2 || n > MaxTensors {
			continue
		}
		block := sizes[from:to]
		foreign := countForeign(sizes[to:], block, false) + countForeign(sizes[:from], block, true)
		if foreign*foreignShare <= len(sizes) && len(sizes)-foreign >= 2*len(block) {
			return block
		}
	}
	return nil
}

// anchors returns the sizes that may mark an iteration, largest first: there must be three, or no stretch between two
// of them can occur twice.
func anchors(sizes []int64) []int64 {
	order := slices.Clone(sizes)
	slices.SortFunc(order, func(a, b int64) int { return cmp.Compare(b, a) })
	var marks []int64
	run := 0 // equal sizes up to i
	for i, s := range order {
		if i == 0 || s != order[i-1] {
			run = 0
		}
		if run++; run == 3 && len(marks) < maxAnchors {
			marks = append(marks, s)
		}
	}
	return marks
}

// commonStretch returns the bounds of the first occurrence of the most frequent stretch from one anchor up to the next.
// Ties go to the earlier one. The bounds are 0, 0 if no stretch occurs twice.
func commonStretch(sizes []int64, anchor int64) (from, to int) {
	type stretch struct{ count, from, to int }
	found := make(map[uint64]*stretch) // by hash; a collision is found out when the log is read
	var best *stretch
	last, hash := -1, uint64(0)
	for i, s := range sizes {
		if s == anchor {
			if last >= 0 {
				at := found[hash]
				if at == nil {
					at = &stretch{0, last, i}
					found[hash] = at
				}
				at.count++
				if best == nil || at.count > best.count || (at.count == best.count && at.from < best.from) {
					best = at
				}
			}
			last, hash = i, 14695981039346656037
		}
		hash = (hash ^ uint64(s)) * 1099511628211 // FNV-1a, 64 bits at a time
	}
	if best == nil || best.count < 2 {
		return 0, 0
	}
	return best.from, best.to
}

// countForeign returns how many of sizes are left over when they are matched, each as early as it can be, with block
// again and again: with backward, from their ends. No other choice leaves fewer.
func countForeign(sizes, block []int64, backward bool) int {
	foreign, next := 0, 0
	for i := range sizes {
		s, want := sizes[i], block[next]
		if backward {
			s, want = sizes[len(sizes)-1-i], block[len(block)-1-next]
		}
		if s != want {
			foreign++
			continue
		}
		if next++; next == len(block) {
			next = 0
		}
	}
	return foreign
}
