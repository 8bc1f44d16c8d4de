package main

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fake measures what the test says: of base, of head, each time the next value.
func fake(name string, base, head []float64) *workload {
	at := map[string]int{}
	return &workload{name: name, bound: 0.03, run: func(_ context.Context, t *tree) (figures, error) {
		values := base
		if t.name == "head" {
			values = head
		}
		at[t.name]++
		return figures{"CPU s": values[(at[t.name]-1)%len(values)]}, nil
	}}
}

// Ensure that a change counts beyond bound and spread alone.
func TestMeasure(t *testing.T) {
	trees := []*tree{{name: "base"}, {name: "head"}}
	tests := []struct {
		name       string
		base, head []float64
		want       string
	}{
		{"the same", []float64{2}, []float64{2}, "| 2 | 2 | +0.0 % | 0.0 % | 3 % | holds (10 pairs) |"},
		{"within the bound", []float64{1}, []float64{1.029}, "holds"},
		{"slower", []float64{1}, []float64{1.04}, "+4.0 % | 0.0 % | 3 % | **slower**"},
		{"faster", []float64{1}, []float64{0.5}, "faster"},
		{"as noisy as base itself", []float64{1, 1.1, 1, 1}, []float64{1.05}, "within the spread"},
	}
	for _, tt := range tests {
		rows, err := measure(t.Context(), fake(tt.name, tt.base, tt.head), trees, 10)
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		if got := rows[0].String(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if rows[0].slower() != strings.Contains(tt.want, "slower") {
			t.Errorf("%s: slower is %v", tt.name, rows[0].slower())
		}
	}
}

// Ensure that a workload that fails is reported, and is an error.
func TestMeasureFails(t *testing.T) {
	broken := errors.New("broken")
	w := &workload{name: "w", run: func(context.Context, *tree) (figures, error) { return nil, broken }}
	if _, err := measure(t.Context(), w, []*tree{{}, {}}, 1); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestQuantile(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{nil, 0.5, 0}, {[]float64{3}, 0.5, 3}, {[]float64{4, 1, 3, 2}, 0.5, 2.5}, {[]float64{4, 1, 3, 2, 5}, 0.25, 2},
	} {
		if got := quantile(tt.values, tt.q); got != tt.want {
			t.Errorf("quantile %v of %v is %v, want %v", tt.q, tt.values, got, tt.want)
		}
	}
	if got := ratios([]float64{0, 2, 3}, []float64{0, 0, 2}); got[0] != 1 || got[1] != 3 || got[2] != 1.5 {
		t.Errorf("ratios %v", got)
	}
}

func TestReported(t *testing.T) {
	out := "cpu: some 3 CPU\nBenchmarkA/x-2  1  300 ns/op  0.5 cpu-s/op  12 B/op   7 allocs/op\n" +
		"BenchmarkA/y-2  1  300 ns/op  9e+01 us-daemon-CPU/job  12 B/op   5 allocs/op\nPASS\n"
	got := reported(out)
	if len(got) != 3 || got["allocs/op"] != 12 || got["cpu-s/op"] != 0.5 || got["us-daemon-CPU/job"] != 90 {
		t.Errorf("%v, want 12 allocations, 0.5 and 90", got)
	}
	if got := reported("PASS\n"); len(got) != 0 {
		t.Errorf("%v without a benchmark", got)
	}
}

// Ensure that a benchmark is found wherever its package is.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"engine/a_test.go":    "package a\n\nfunc BenchmarkHash(b *testing.B) {}\n",
		"crashtest/a_test.go": "package a\n\nfunc BenchmarkSubmit(b *testing.B) {}\n",
		"api/a_test.go":       "package a\n\nfunc BenchmarkSubmit(b *testing.B) {}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	tr := &tree{name: "head", dir: dir}
	for _, tt := range []struct{ function, hint, want string }{
		{"BenchmarkHash", "eventlog", "engine"}, {"BenchmarkSubmit", "crashtest", "crashtest"},
		{"BenchmarkSubmit", "gone", ""}, {"BenchmarkGone", "engine", ""},
	} {
		got, err := tr.find(tt.function, []string{tt.hint})
		if tt.want == "" && err == nil || tt.want != "" && (err != nil || got != filepath.Join(dir, tt.want)) {
			t.Errorf("%s, %s: %s, %v, want %s", tt.function, tt.hint, got, err, tt.want)
		}
	}
}

// Ensure that every benchmark of the list is in this tree.
func TestBenchmarksAreThere(t *testing.T) {
	tr := &tree{name: "head", dir: "../.."}
	text, err := os.ReadFile("workloads.go")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`function: "(\w+)".*hints: \[\]string\{(.*?)\}`).FindAllStringSubmatch(string(text), -1)
	if len(list) < 10 {
		t.Fatalf("%d benchmarks, want all", len(list))
	}
	for _, m := range list {
		if _, err := tr.find(m[1], strings.Split(strings.ReplaceAll(m[2], `"`, ""), ", ")); err != nil {
			t.Error(err)
		}
	}
}

// Ensure that what is short is repeated, and its mean is what counts.
func TestRepeated(t *testing.T) {
	for took, want := range map[float64]int{0.3: 1, 0.06: 4, 0.001: 20} {
		n := 0
		got, err := repeated(func() (figures, error) { n++; return figures{"CPU s": took, "allocs/op": 7}, nil })
		if err != nil || n != want || math.Abs(got["CPU s"]-took) > 1e-9 || got["allocs/op"] != 7 {
			t.Errorf("%v CPU s: %d times, %v, %v, want %d times and the mean", took, n, got, err, want)
		}
	}
	broken := errors.New("broken")
	if _, err := repeated(func() (figures, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}
