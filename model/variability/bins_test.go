package variability

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
)

// open opens a file of the shared data on PAL.
func open(t testing.TB, path ...string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join(append([]string{shareddata.DataDir(t), "pal"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func readScores(t testing.TB, path ...string) *Scores {
	t.Helper()
	s, err := ReadScores(bufio.NewReader(open(t, path...)), path[len(path)-1])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Ensure that binning the scores that the released code drew gives the binned scores that it used.
//
// Reference: golden files of the released code, tag artifact-v1.4, seed 42.
func TestGoldenBins(t *testing.T) {
	for _, gpus := range []int{64, 256} {
		file := fmt.Sprintf("artifact-gpus-%d.csv", gpus)
		s := readScores(t, "golden", file)
		rows, err := csv.NewReader(open(t, "golden", file)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if len(s.GPUs) != gpus || !slices.Equal(s.Classes, []string{"A", "B", "C", "D"}) {
			t.Fatalf("%d GPUs, classes %q", len(s.GPUs), s.Classes)
		}
		for c, bins := range (Rule{K: PublishedK}).All(s) {
			at, worst := slices.Index(rows[0], "sf_class"+s.Classes[c]), 0.0
			for g, row := range rows[1:] {
				want, err := strconv.ParseFloat(row[at], 64)
				if err != nil {
					t.Fatal(err)
				}
				worst = max(worst, math.Abs(bins.Of(g)-want))
			}
			if worst > 1e-12 {
				t.Errorf("%d GPUs, class %s: a binned score is off by %g, want at most 1e-12", gpus, s.Classes[c],
					worst)
			}
			t.Logf("%d GPUs, class %s: off by at most %.2g, SF %.6f, outliers %v", gpus, s.Classes[c], worst, bins.SF,
				bins.Outliers)
		}
	}
}

// Ensure that searching all of 2..10 finds the clusters found independently, and that GPU 35 is alone in its bin.
//
// Reference: specification of PAL, 2.2 and 4.1.
func TestFullSearch(t *testing.T) {
	all := Rule{}.All(readScores(t, "golden", "artifact-gpus-64.csv"))
	for c, want := range []int{2, 4, 3, 2} {
		if all[c].K != want {
			t.Errorf("class %d: K = %d, want %d", c, all[c].K, want)
		}
	}
	if a := all[0]; !slices.Equal(a.Outliers, []int{35}) || a.Bin[35] != 2 || a.Centres[2] != 2.8278 &&
		math.Abs(a.Centres[2]-2.8278) > 1e-4 {
		t.Errorf("class A: outliers %v, bin of GPU 35 is %d, centres %v", a.Outliers, a.Bin[35], a.Centres)
	}
}

func TestBinsByHand(t *testing.T) {
	same := slices.Repeat([]float64{.1}, 30)
	slow := append(slices.Repeat([]float64{1, 1.25}, 10), 8)
	for _, c := range []struct {
		name string
		rule Rule
		x    []float64
		want Bins
	}{
		{"one GPU", Rule{}, []float64{2}, Bins{Bin: []int{0}, SF: []float64{1}, Centres: []float64{2}, K: 1}},
		{"one GPU, two clusters", Rule{K: 2}, []float64{2},
			Bins{Bin: []int{0}, SF: []float64{1}, Centres: []float64{2}, K: 1}},
		{"two GPUs", Rule{}, []float64{3, 1}, Bins{Bin: []int{0, 0}, SF: []float64{1}, Centres: []float64{2}, K: 1}},
		{"two GPUs, two clusters", Rule{K: 2}, []float64{3, 1},
			Bins{Bin: []int{1, 0}, SF: []float64{.5, 1.5}, Centres: []float64{1, 3}, K: 2}},
		{"all alike", Rule{}, same, Bins{Bin: make([]int, 30), SF: []float64{1}, Centres: []float64{.1}, K: 1}},
		{"two groups", Rule{}, []float64{1, 3, 1, 3},
			Bins{Bin: []int{0, 1, 0, 1}, SF: []float64{.5, 1.5}, Centres: []float64{1, 3}, K: 2, Silhouette: 1}},
		{"an outlier takes a cluster of its own", Rule{}, slow,
			Bins{Bin: append(slices.Repeat([]int{0, 1}, 10), 2), SF: []float64{.8, 1, 6.4},
				Centres: []float64{1, 1.25, 8}, Outliers: []int{20}, K: 2, Silhouette: 1}},
	} {
		got := c.rule.Bins(c.x)
		for b := range got.SF {
			got.SF[b], got.Centres[b] = math.Round(1e9*got.SF[b])/1e9, math.Round(1e9*got.Centres[b])/1e9
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%+v, want\n%+v", c.name, got, c.want)
		}
	}
}

// Ensure that a change of unit changes no bin, and that GPUs with the same score share one.
func TestBinsKeepUnderScaling(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		x := draw(r, 1+r.IntN(80))
		rule := Rule{K: r.IntN(4)}
		bins := rule.Bins(x)
		factor := math.Exp(r.NormFloat64())
		scaled := make([]float64, len(x))
		for g := range x {
			scaled[g] = x[g] * factor
		}
		again := rule.Bins(scaled)
		if !slices.Equal(bins.Bin, again.Bin) || bins.K != again.K || !slices.Equal(bins.Outliers, again.Outliers) {
			t.Fatalf("times %v, the bins of %v change from %v to %v", factor, x, bins, again)
		}
		checkBins(t, x, bins)
		for b := range bins.SF {
			if math.Abs(bins.SF[b]/again.SF[b]-1) > 1e-12 {
				t.Fatalf("times %v, SF changes from %v to %v", factor, bins.SF, again.SF)
			}
		}
	}
}

// checkBins checks what is said of all bins.
func checkBins(t *testing.T, x []float64, b Bins) {
	t.Helper()
	if !slices.IsSorted(b.SF) || !slices.IsSorted(b.Centres) || math.Abs(median(b.SF)-1) > 1e-12 ||
		len(b.Bin) != len(x) {
		t.Fatalf("bins %+v, want ascending ones with median 1", b)
	}
	for g := range x {
		for h := range x {
			if x[g] <= x[h] && b.Bin[g] > b.Bin[h] {
				t.Fatalf("scores %v and %v in bins %d and %d", x[g], x[h], b.Bin[g], b.Bin[h])
			}
		}
	}
}

// draw returns n scores with duplicates, groups and a few outliers.
func draw(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for g := range x {
		x[g] = 1 + .1*float64(r.IntN(3)) + .02*r.NormFloat64()
		switch r.IntN(20) {
		case 0:
			x[g] *= 1 + 2*r.Float64()
		case 1, 2:
			x[g] = x[r.IntN(g+1)]
		}
		x[g] = max(.01, x[g])
	}
	return x
}

func BenchmarkBins(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{64, 1024, 16384} {
		x := draw(r, n)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				Rule{}.Bins(x)
			}
		})
	}
}
