package speedup

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Reference: specification of BOA, section 4, 1, 3 and 5.
func TestLaws(t *testing.T) {
	points, err := NewPoints(map[int]float64{1: 1, 2: 1.8, 3: 2, 4: 3, 8: 4.2}, Nothing)
	if err != nil {
		t.Fatal(err)
	}
	linear, _ := NewPoints(map[int]float64{2: 1, 4: 3, 8: 0}, Linear)
	for _, c := range []struct {
		law  Law
		gpus float64
		want float64
	}{
		{Power{.5}, 16, 4}, {Power{0}, 16, 1}, {Amdahl{.9}, 11, 5.5}, {Amdahl{.8}, 1, 1}, {Amdahl{0}, 100, 1},
		{Amdahl{1}, 7, 7},
		{Proportional{}, 2.5, 2.5},
		{points, 3, 2}, {points, 8, 4.2}, {points, 5, 0}, {points, 9, 0}, {points, 1.5, 0},
		{linear, 1, 0}, {linear, 2, 1}, {linear, 2.5, 1.5}, {linear, 3, 2}, {linear, 6, 0}, {linear, 8, 0},
	} {
		if got := c.law.At(c.gpus); !near(got, c.want) {
			t.Errorf("%+v on %v GPUs: %v, want %v", c.law, c.gpus, got, c.want)
		}
	}
}

func TestBadPoints(t *testing.T) {
	for _, c := range []struct {
		table map[int]float64
		want  string
	}{
		{nil, "speedup: table of 0 widths without a speedup above 0, want one"},
		{map[int]float64{1: 0, 2: 0}, "speedup: table of 2 widths without a speedup above 0, want one"},
		{map[int]float64{0: 1}, "speedup: table: 0 GPUs, want 1 to 1073741824"},
		{map[int]float64{4: math.NaN()}, "speedup: table: NaN on 4 GPUs, want a number from 0 to 1e+09"},
		{map[int]float64{4: -1}, "speedup: table: -1 on 4 GPUs, want a number from 0 to 1e+09"},
		{map[int]float64{4: math.Inf(1)}, "speedup: table: +Inf on 4 GPUs, want a number from 0 to 1e+09"},
	} {
		if _, err := NewPoints(c.table, Linear); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// Ensure that curves which are not monotone, have holes or no way on one GPU pass through a Chain as they are: the
// samples of bert by epoch that were measured on a cluster.
//
// Reference: specification of BOA, 5.2.
func TestJaggedCurves(t *testing.T) {
	epoch := func(speeds ...float64) *Points {
		table := make(map[int]float64)
		for i, gpus := range []int{1, 2, 4, 8, 12, 16} {
			table[gpus] = speeds[i]
		}
		p, err := NewPoints(table, Nothing)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	app := Stages{{97077, epoch(14.8, 21.4, 24.5, 16.7, 13.2, 16.5)}, {97077, epoch(16.1, 31.2, 56.1, 103, 127, 146)},
		{1, epoch(0, 5, 0, 0, 0, 4)}}
	c := ChainOf(app, 4, 16, sched.BatchRange{})
	if len(c) != 3 || c[0].Batch != nil || c[0].Accum != nil {
		t.Fatalf("%+v", c)
	}
	for phase, want := range []map[int]float64{{1: 14.8, 2: 21.4, 4: 24.5, 8: 16.7, 12: 13.2, 16: 16.5},
		{1: 16.1, 2: 31.2, 4: 56.1, 8: 103, 12: 127, 16: 146}, {2: 5, 16: 4}} {
		for k, speed := range c[phase].Speed {
			if speed != want[k] {
				t.Errorf("epoch %d on %d GPUs: %v, want %v", phase, k, speed, want[k])
			}
		}
	}
	if s, ok := c.Seconds(2); !ok || !near(s, 97077/21.4+97077/31.2+.2) {
		t.Errorf("%v s on 2 GPUs, %v", s, ok)
	}
	for _, k := range []int{-1, 0, 1, 3, 17} {
		if s, ok := c.Seconds(k); ok {
			t.Errorf("%v s on %d GPUs", s, k)
		}
	}
}

// Points are speedups at some widths. Any shape is allowed: measured curves fall, jump and start at more than one GPU.
type Points struct {
	GPUs    []int     // ascending, > 0
	Speedup []float64 // of each; 0 = not possible
	Between Between   // what holds between them; beyond them nothing is possible
}

// NewPoints returns the points of a table. It is an error if it is empty, names a width below 1 or a speedup that is
// not a number >= 0, or has none above 0.
func NewPoints(table map[int]float64, between Between) (*Points, error) {
	p := &Points{Between: between}
	for gpus := range table {
		p.GPUs = append(p.GPUs, gpus)
	}
	slices.Sort(p.GPUs)
	possible := false
	for _, gpus := range p.GPUs {
		s := table[gpus]
		switch {
		case gpus < 1 || gpus > maxCount:
			return nil, fmt.Errorf("speedup: table: %d GPUs, want 1 to %d", gpus, maxCount)
		case !(s >= 0 && s <= maxRate):
			return nil, fmt.Errorf("speedup: table: %v on %d GPUs, want a number from 0 to %v", s, gpus,
				float64(maxRate))
		}
		possible = possible || s > 0
		p.Speedup = append(p.Speedup, s)
	}
	if !possible {
		return nil, fmt.Errorf("speedup: table of %d widths without a speedup above 0, want one", len(table))
	}
	return p, nil
}

// At returns the speedup of a width.
func (p *Points) At(gpus float64) float64 {
	i := 0
	for i < len(p.GPUs) && float64(p.GPUs[i]) < gpus {
		i++
	}
	switch {
	case i == len(p.GPUs):
		return 0
	case float64(p.GPUs[i]) == gpus:
		return p.Speedup[i]
	case i == 0 || p.Between != Linear || p.Speedup[i-1] == 0 || p.Speedup[i] == 0:
		return 0
	}
	return mix(p.Speedup[i-1], p.Speedup[i], share(gpus, float64(p.GPUs[i-1]), float64(p.GPUs[i])))
}
