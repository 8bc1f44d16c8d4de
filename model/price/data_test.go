package price

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
)

// Sia's seconds of a restart, as specs of BOA, section 5.3, give them.
var siaRestart = map[string]float64{"cifar10": 50, "deepspeech2": 25, "bert": 120, "yolov3": 80, "imagenet": 250,
	"ncf": 15}

// rows reads a CSV file without its header.
func rows(t testing.TB, path ...string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join(append([]string{shareddata.DataDir(t), "pollux"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return list[1:]
}

func number(t testing.TB, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// applications returns the six applications on T4 GPUs, in seconds, without rates: true goodput, best batch, packed 4
// per node, ncf on 1 GPU.
func applications(t testing.TB) map[string]Class {
	t.Helper()
	apps := make(map[string]Class)
	for _, row := range rows(t, "derived", "goodput_t4.csv") {
		name, epoch, k := row[0], int(number(t, row[1])), int(number(t, row[3]))
		c := apps[name]
		c.Name, c.Restart = name, siaRestart[name]
		if epoch == len(c.Times) {
			c.Times = append(c.Times, nil)
		}
		if epoch == 0 {
			c.Configs = append(c.Configs, Config{GPUs: k})
		}
		c.Times[epoch] = append(c.Times[epoch], number(t, row[2])/number(t, row[4]))
		apps[name] = c
	}
	return apps
}

// mixes returns the workloads of boa_frontier_t4.csv: files of jobs, their number, and the seconds in which jobs
// arrive.
func mixes(t testing.TB) map[string][]Class {
	t.Helper()
	apps := applications(t)
	pollux := func(n int) []string { return []string{"osdi21", "workloads", fmt.Sprintf("workload-%d.csv", n)} }
	var eight, ten [][]string
	for n := 1; n <= 8; n++ {
		eight = append(eight, pollux(n))
	}
	for n := 1; n <= 10; n++ {
		ten = append(ten, []string{"sia", "workloads", "newtrace", fmt.Sprintf("workload-%d.csv", n)})
	}
	return map[string][]Class{
		"pollux-1.0-mean8":    mix(t, apps, 28800, eight...),
		"pollux-1.0-w6":       mix(t, apps, 28800, pollux(6)),
		"boa-cbd":             mix(t, apps, 26752, []string{"boa", "workload-1-cbd.csv"}),
		"sia-newtrace-mean10": mix(t, apps, 172800, ten...),
	}
}

func mix(t testing.TB, apps map[string]Class, window float64, files ...[]string) []Class {
	t.Helper()
	counts := make(map[string]float64)
	for _, path := range files {
		for _, row := range rows(t, path...) {
			counts[row[2]]++
		}
	}
	var list []Class
	for _, name := range []string{"bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"} {
		if counts[name] > 0 {
			c := apps[name]
			c.Rate = counts[name] / float64(len(files)) / window
			list = append(list, c)
		}
	}
	return list
}

// Ensure that the bound and the plan without mixing are those computed independently of us, within 0.5 % in usage and
// mean time, and that mixing never makes a plan worse. The other methods draw by another generator, or mix where
// the file does not: they are within the budget and no better than the optimum.
func TestFrontierOfT4(t *testing.T) {
	mixes := mixes(t)
	exact, free := make(map[string]*Exact), make(map[string]*Exact)
	for name, classes := range mixes {
		exact[name] = prepared(t, classes)
		free[name] = prepared(t, withoutRestarts(classes))
	}
	worst := 0.0
	for _, row := range rows(t, "derived", "boa_frontier_t4.csv") {
		name, budget, method, delay, usage := row[0], number(t, row[1]), row[2], number(t, row[3]), number(t, row[4])
		p := planAt(t, exact[name].At, budget)
		var got *Plan
		switch method {
		case "no-rescale per-epoch lower bound":
			got = planAt(t, free[name].At, budget)
			if p.Delay < got.Delay {
				t.Errorf("%s at %v: %.2f s with restarts, less than %.2f without", name, budget, p.Delay, got.Delay)
			}
		case "lagrangian-dp":
			got = planAt(t, exact[name].Unmixed, budget)
			if p.Delay > delay*1.000001 {
				t.Errorf("%s at %v: mixed %.2f s, unmixed %.2f", name, budget, p.Delay, delay)
			}
		default:
			if p.Delay > delay*1.000001 {
				t.Errorf("%s at %v: %.2f s, more than the %.2f of %s", name, budget, p.Delay, delay, method)
			}
			continue
		}
		off := max(math.Abs(got.Delay/delay-1), math.Abs(got.Usage/usage-1))
		worst = max(worst, off)
		if off > 0.005 {
			t.Errorf("%s at %v, %s: %.2f s with %.3f GPUs, want %.2f with %.3f", name, budget, method, got.Delay,
				got.Usage, delay, usage)
		}
	}
	t.Logf("largest difference %.2g", worst)
}

// Ensure that mixed plans meet the figures of specs of BOA, section 5.5, which are rounded to a second, and say how the
// other methods do: -v prints the table.
func TestMixedOfT4(t *testing.T) {
	mixes := mixes(t)
	for _, want := range []struct {
		mix                string
		budget, bound, jct float64
		glue, oneWidth     float64 // of another generator; unmixed
	}{
		{"pollux-1.0-w6", 96, 3312, 3950, 4446, 7198},
		{"pollux-1.0-w6", 112, 1641, 1960, 2074, 2419},
		{"pollux-1.0-w6", 128, 1233, 1417, 1505, 1694},
		{"pollux-1.0-w6", 160, 976, 1088, 1117, 1235},
		{"pollux-1.0-w6", 192, 913, 995, 1015, 1077},
		{"boa-cbd", 22, 1808, 2821, 3331, 4091},
		{"boa-cbd", 24, 1244, 1642, 1814, 1864},
		{"boa-cbd", 32, 719, 890, 904, 1174},
		{"boa-cbd", 48, 642, 721, 735, 739},
	} {
		classes := mixes[want.mix]
		x := prepared(t, classes)
		p := planAt(t, x.At, want.budget)
		bound := planAt(t, prepared(t, withoutRestarts(classes)).At, want.budget)
		one := planAt(t, func(b float64) (*Plan, error) { return OneWidth(classes, b) }, want.budget)
		sum, least, most := 0.0, math.Inf(1), 0.0
		for seed := range uint64(10) {
			g := planAt(t, glue(t, classes, seed).At, want.budget)
			sum, least, most = sum+g.Delay/10, min(least, g.Delay), max(most, g.Delay)
		}
		equalWidth := math.NaN()
		if e, err := EqualWidth(classes, want.budget); err == nil {
			equalWidth = e.Delay
		}
		t.Logf("%s at %v, least %.1f: bound %.0f (%v), mixed %.0f (%v), glue %.0f, %.0f..%.0f (%v), one width %.0f "+
			"(%v), equal width %.0f",
			want.mix, want.budget, x.Frontier().Least(), bound.Delay, want.bound, p.Delay, want.jct, sum, least, most,
			want.glue, one.Delay, want.oneWidth, equalWidth)
		if math.Abs(p.Delay-want.jct) > 0.6 || math.Abs(bound.Delay-want.bound) > 0.6 {
			t.Errorf("%s at %v: %.2f s, bound %.2f, want %v and %v", want.mix, want.budget, p.Delay, bound.Delay,
				want.jct, want.bound)
		}
	}
}

func prepared(t testing.TB, classes []Class) *Exact {
	t.Helper()
	x, err := NewExact(classes)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func glue(t testing.TB, classes []Class, seed uint64) *Glue {
	t.Helper()
	g, err := NewGlue(classes, seed)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func withoutRestarts(classes []Class) []Class {
	free := slices.Clone(classes)
	for i := range free {
		free[i].Restart = 0
	}
	return free
}

func planAt(t testing.TB, at func(float64) (*Plan, error), budget float64) *Plan {
	t.Helper()
	p, err := at(budget)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// BenchmarkExact makes a plan for the six applications, 332 epochs and 17 widths of the BOA data, restarts included.
func BenchmarkExact(b *testing.B) {
	classes := mixes(b)["pollux-1.0-w6"]
	b.ReportAllocs()
	for b.Loop() {
		x := prepared(b, classes)
		planAt(b, x.At, 128)
	}
}

// BenchmarkGlue is the authors' search on the same.
func BenchmarkGlue(b *testing.B) {
	classes := mixes(b)["pollux-1.0-w6"]
	b.ReportAllocs()
	for b.Loop() {
		planAt(b, glue(b, classes, 0).At, 128)
	}
}
