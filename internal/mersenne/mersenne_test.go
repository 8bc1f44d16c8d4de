package mersenne_test

import (
	"math"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/internal/mersenne"
)

// Ensure that the generator is Python's: values printed by CPython 3.11.
func TestFloat64(t *testing.T) {
	for _, c := range []struct {
		seed uint32
		want []float64
	}{
		{42, []float64{0.6394267984578837, 0.025010755222666936, 0.27502931836911926}},
		{1, []float64{0.13436424411240122, 0.8474337369372327}},
	} {
		m := mersenne.New(c.seed)
		for i, want := range c.want {
			if got := m.Float64(); got != want {
				t.Errorf("seed %d, number %d: got %v, want %v", c.seed, i, got, want)
			}
		}
	}
	far := mersenne.New(math.MaxUint32)
	for range 1000 {
		far.Float64()
	}
	if got := far.Float64(); got != 0.44832732332135994 {
		t.Errorf("number 1000: got %v", got)
	}
}

// Ensure that choice() and sample(), by pool and by set, are Python's: one stream after random.seed(42), CPython 3.11.
func TestSample(t *testing.T) {
	m := mersenne.New(42)
	for i, want := range []int{1309, 228, 51, 563, 501, 457, 285, 209} {
		if got := m.Below(1404); got != want {
			t.Errorf("choice %d: got %d, want %d", i, got, want)
		}
	}
	for _, c := range []struct {
		list int
		want []int
	}{
		{64, []int{11, 54, 4, 3}},
		{64, []int{11, 13, 14, 32, 38, 1, 35, 12, 45, 41, 44, 34, 26, 61, 28, 37}},
		{256, []int{142, 3, 81, 216, 174, 79, 110, 172}},
		{22, []int{3, 2, 12, 11, 19}},
	} {
		if got := sample(m, c.list, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%d of %d: got %v, want %v", len(c.want), c.list, got, c.want)
		}
	}
	if got := m.Float64(); got != 0.26452086722201307 {
		t.Errorf("random after that: got %v", got)
	}
}

// Ensure that pairs are drawn as random.sample(range(n), 2) of Python 3.11 draws them, from short lists and long.
func TestPairs(t *testing.T) {
	for seed, want := range map[uint32][][]int{
		7: {{1, 0}, {1, 0}, {2, 17}, {3, 11}, {37, 3}, {4, 1}, {38, 88}, {1, 0}},
		0: {{1, 0}, {0, 1}, {16, 15}, {12, 9}, {30, 22}, {4, 1}, {516, 142}, {1, 0}},
	} {
		m := mersenne.New(seed)
		for i, n := range []int{2, 3, 21, 22, 50, 5, 1000, 2} {
			if got := sample(m, n, 2); !slices.Equal(got, want[i]) {
				t.Errorf("seed %d, 2 of %d: %v, want %v", seed, n, got, want[i])
			}
		}
	}
}

// sample draws k of the numbers below n.
func sample(m *mersenne.Generator, n, k int) (got []int) {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	mersenne.Sample(m, list, k, func(x int) { got = append(got, x) })
	return got
}
