package published

import (
	"slices"
	"testing"
)

// Ensure that pairs are drawn as random.sample(range(n), 2) of Python 3.11 draws them, from short lists and long.
func TestTwo(t *testing.T) {
	for seed, want := range map[uint32][][2]int{
		7: {{1, 0}, {1, 0}, {2, 17}, {3, 11}, {37, 3}, {4, 1}, {38, 88}, {1, 0}},
		0: {{1, 0}, {0, 1}, {16, 15}, {12, 9}, {30, 22}, {4, 1}, {516, 142}, {1, 0}},
	} {
		m := newMersenne(seed)
		var got [][2]int
		for _, n := range []int{2, 3, 21, 22, 50, 5, 1000, 2} {
			a, b := m.two(n)
			got = append(got, [2]int{a, b})
		}
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: %v, want %v", seed, got, want)
		}
	}
}
