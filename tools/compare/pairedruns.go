package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// row is the outcome of a workload in one unit.
type row struct {
	name, unit string
	base, head float64 // medians
	change     float64 // median over the pairs of head over base, less 1
	spread     float64 // half the range between the quartiles of base over base
	bound      float64
	pairs      int
}

// measure runs a workload with base, head and base again, so many times, and returns a row for each unit.
func measure(ctx context.Context, w *workload, trees []*tree, pairs int) ([]row, error) {
	values := [3]map[string][]float64{{}, {}, {}} // base, head, base again
	for i := range pairs {
		order := []int{0, 1, 2}
		if i%2 == 1 {
			order = []int{2, 1, 0} // whoever runs first after a pause has no luck each time
		}
		for _, k := range order {
			f, err := once(ctx, w, trees[k%2])
			if err != nil {
				return nil, err
			}
			for unit, v := range f {
				values[k][unit] = append(values[k][unit], v)
			}
		}
	}
	return rows(w, values), nil
}

// once runs a workload within the longest time.
func once(ctx context.Context, w *workload, t *tree) (figures, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	return w.run(ctx, t)
}

func rows(w *workload, values [3]map[string][]float64) []row {
	var result []row
	units := make([]string, 0, len(values[0]))
	for unit := range values[0] {
		units = append(units, unit)
	}
	slices.Sort(units)
	for _, unit := range units {
		base, head, again := values[0][unit], values[1][unit], values[2][unit]
		noise := ratios(again, base)
		result = append(result, row{
			name: w.name, unit: unit, base: quantile(base, 0.5), head: quantile(head, 0.5),
			change: quantile(ratios(head, base), 0.5) - 1,
			spread: (quantile(noise, 0.75) - quantile(noise, 0.25)) / 2,
			bound:  w.bound, pairs: len(base),
		})
	}
	return result
}

// ratios divides pair by pair; nothing over nothing is 1.
func ratios(a, b []float64) []float64 {
	var r []float64
	for i := range min(len(a), len(b)) {
		switch {
		case b[i] > 0:
			r = append(r, a[i]/b[i])
		case a[i] == 0:
			r = append(r, 1)
		default:
			r = append(r, 1+a[i]) // from nothing to something is as bad as it is large
		}
	}
	return r
}

// quantile interpolates between the sorted values; 0 of none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	at := q * float64(len(s)-1)
	low := int(at)
	if low+1 >= len(s) {
		return s[low]
	}
	return s[low] + (at-float64(low))*(s[low+1]-s[low])
}

// slower says whether head is above base by more than the bound and the spread.
func (r row) slower() bool { return r.change > r.bound+r.spread }

// String is a row of the table.
func (r row) String() string {
	verdict := "holds"
	switch {
	case r.slower():
		verdict = "**slower**"
	case r.change < -r.bound-r.spread:
		verdict = "faster"
	case r.change > r.bound:
		verdict = "within the spread"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %+.1f %% | %.1f %% | %g %% | %s (%d pairs) |", r.name, r.unit,
		short(r.base), short(r.head), 100*r.change, 100*r.spread, 100*r.bound, verdict, r.pairs)
}

// short prints three digits, and whole numbers in full.
func short(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// metric is a figure of a benchmark that counts: allocations, and CPU time that the benchmark measured itself.
var metric = regexp.MustCompile(`\s([0-9.]+(?:e[+-]\d+)?) (allocs/op|\S*(?:CPU|cpu)\S*)`)

// reported sums up, by unit, the metrics that the output of benchmarks has.
func reported(output string) figures {
	f := figures{}
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "Benchmark") {
			continue
		}
		for _, m := range metric.FindAllStringSubmatch(line, -1) {
			if n, err := strconv.ParseFloat(m[1], 64); err == nil {
				f[m[2]] += n
			}
		}
	}
	return f
}
