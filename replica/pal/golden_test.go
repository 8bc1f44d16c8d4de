package pal

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

// What the golden file holds.
const (
	goldenRuns = 72
	goldenJobs = 160
)

// Ensure that every recorded outcome is reproduced: 6 workloads x 6 placements x 2 rounds x 160 jobs. Reference: SC'24
// artifact, tag artifact-v1.4, 64 GPUs, FIFO, L = 1.7, trace repeated; golden-sia-fifo.csv holds what a restatement did
// that was found equal to the artifact.
func TestGolden(t *testing.T) {
	dir := dataDir(t)
	want := readGolden(t, dir)
	p := artifact(t, dir)
	rows, differ := 0, 0
	for key, finish := range want {
		p.Round, p.Policy = key.round, key.policy
		res := Run(readJobs(t, dir, key.workload), p)
		if len(finish) != goldenJobs || len(res.Jobs) != goldenJobs {
			t.Fatalf("%+v: %d jobs, played %d, want %d", key, len(finish), len(res.Jobs), goldenJobs)
		}
		wrong := 0
		for i, o := range res.Jobs {
			rows++
			if o.Finish != finish[i] {
				if wrong++; wrong == 1 {
					t.Errorf("%+v: job %s finishes at %d, want %d", key, o.ID, o.Finish, finish[i])
				}
			}
		}
		differ += wrong
	}
	t.Logf("compared %d runs, %d rows, %d differ", len(want), rows, differ)
	if len(want) != goldenRuns {
		t.Errorf("compared %d runs, want %d", len(want), goldenRuns)
	}
}

// Ensure that the raw scores of the artifact are drawn bit for bit, for both cluster sizes.
// Reference: SC'24 artifact, cluster_state.py, random.seed(42).
func TestDraw(t *testing.T) {
	dir := dataDir(t)
	rows := readRows(t, dir)
	for _, gpus := range []int{64, 256} {
		want, _ := readScores(t, dir, gpus)
		got := Draw(DefaultSeed, gpus, rows)
		for c := range Classes {
			if !slices.Equal(got[c], want[c]) {
				t.Errorf("%d GPUs, class %c: got %v, want %v", gpus, 'A'+c, got[c], want[c])
			}
		}
	}
}

func dataDir(t testing.TB) string { return filepath.Join(shareddata.DataDir(t), "pal") }

// artifact is the set-up of the Sia-Philly experiment, with rounds of 360 s.
func artifact(t testing.TB, dir string) Params {
	p := Params{Round: 360, Locality: 1.7, Wrap: true}
	p.PM, p.SF = readScores(t, dir, 64)
	for c, rows := range readRows(t, dir) {
		p.Rows[c] = len(rows)
	}
	return p
}

type goldenKey struct {
	round    int64
	workload int
	policy   Policy
}

// readGolden returns the completions of jobs 0 to 159 of each run.
func readGolden(t testing.TB, dir string) map[goldenKey][]int64 {
	t.Helper()
	names := map[string]Policy{}
	for p := range policies {
		names[p.String()] = p
	}
	runs := map[goldenKey][]int64{}
	for _, row := range readCSV(t, filepath.Join(dir, "golden/golden-sia-fifo.csv"), "round_s", "workload", "policy",
		"job", "finish_s") {
		policy, ok := names[row[2]]
		key := goldenKey{number[int64](t, row[0]), int(number[int64](t, row[1])), policy}
		if !ok || row[3] != strconv.Itoa(len(runs[key])) {
			t.Fatalf("golden file: row %q not understood", row)
		}
		runs[key] = append(runs[key], number[int64](t, row[4]))
	}
	return runs
}

func readJobs(t testing.TB, dir string, workload int) (jobs []Job) {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("traces/workload-%d.csv", workload))
	for _, row := range readCSV(t, path, "job_id", "num_gpus", "submit_time", "duration", "model") {
		jobs = append(jobs, Job{ID: row[0], GPUs: int(number[int64](t, row[1])), Submit: number[int64](t, row[2]),
			Iterations: number[float64](t, row[3]), Model: row[4]})
	}
	return jobs
}

func readScores(t testing.TB, dir string, gpus int) (pm, sf Scores) {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("golden/artifact-gpus-%d.csv", gpus))
	for c, name := range []string{"classA", "classB", "classC", "classD"} {
		for _, row := range readCSV(t, path, "pm_"+name, "sf_"+name) {
			pm[c] = append(pm[c], number[float64](t, row[0]))
			sf[c] = append(sf[c], number[float64](t, row[1]))
		}
	}
	return pm, sf
}

// readRows returns the iteration times of the file that stands for each class in the artifact's profiles.json.
func readRows(t testing.TB, dir string) (rows Scores) {
	t.Helper()
	for c, name := range []string{"resnet", "bert", "bert", "pagerank"} {
		for _, row := range readCSV(t, filepath.Join(dir, "variability", name+"-longhorn-agg.csv"), "perf") {
			rows[c] = append(rows[c], pandasNumber(t, row[0]))
		}
	}
	return rows
}

// readCSV returns the named columns.
func readCSV(t testing.TB, path string, columns ...string) (rows [][]string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil || len(all) == 0 {
		t.Fatalf("%s: %d lines, error %v", path, len(all), err)
	}
	for _, line := range all[1:] {
		var row []string
		for _, name := range columns {
			i := slices.Index(all[0], name)
			if i < 0 {
				t.Fatalf("%s: no column %s", path, name)
			}
			row = append(row, line[i])
		}
		rows = append(rows, row)
	}
	return rows
}

func number[T int64 | float64](t testing.TB, s string) T {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || x != float64(T(x)) {
		t.Fatalf("number %q: not understood, %v", s, err)
	}
	return T(x)
}

// pandasNumber reads digits with a decimal point as pandas.read_csv does: of more than 17 digits only the first 17, and
// with a rounding at each digit beyond 2^53. That changes the last bit of 17 rows of the PageRank file.
func pandasNumber(t testing.TB, s string) float64 {
	t.Helper()
	x, digits, decimals, point := 0.0, 0, 0, false
	for _, d := range s {
		switch {
		case d == '.' && !point:
			point = true
		case d < '0' || d > '9':
			t.Fatalf("number %q: want digits and a point", s)
		case digits < 17:
			x = float64(x*10) + float64(d-'0')
			digits++
			if point {
				decimals++
			}
		}
	}
	return x / math.Pow10(decimals)
}

// BenchmarkRun plays workload 1 of the Sia-Philly experiment, 160 tracked jobs, R = 300 s. The released simulator takes
// 94 s of CPU time for PAL and FIFO.
func BenchmarkRun(b *testing.B) {
	dir := dataDir(b)
	p := artifact(b, dir)
	p.Round = 300
	jobs := readJobs(b, dir, 1)
	for order := range orders {
		for policy := range policies {
			p.Order, p.Policy, p.Wrap = order, policy, order == FIFO
			b.Run(fmt.Sprintf("%v/%v", order, policy), func(b *testing.B) {
				b.ReportAllocs()
				var res Result
				for b.Loop() {
					res = Run(jobs, p)
				}
				b.ReportMetric(float64(res.Rounds), "rounds")
			})
		}
	}
}

// Draw returns the raw scores that the released simulator gives its GPUs: for each GPU and each class one row of the
// class's file, drawn with replacement, over the median of the file. Rows holds the iteration time of each row, in any
// unit, > 0, at least one; seed 0 means DefaultSeed. Draw reads its arguments only.
//
// The simulator looks GPUs up by number where the files have UUIDs, so it finds none and takes the branch for GPUs that
// were not measured: a single bad run becomes a lasting property of a GPU.
//
// Source: released simulator, cluster_state.py.
func Draw(seed uint32, gpus int, rows Scores) (pm Scores) {
	var medians [Classes]float64
	for c := range rows {
		medians[c] = median(rows[c])
	}
	m := newGenerator(seed)
	for range gpus {
		for c := range rows {
			pm[c] = append(pm[c], rows[c][m.Below(len(rows[c]))]/medians[c])
		}
	}
	return pm
}

func median(xs []float64) float64 {
	sorted := slices.Sorted(slices.Values(xs))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
