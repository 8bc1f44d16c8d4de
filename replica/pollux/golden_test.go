package pollux

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/model/speedup"
)

// folder returns the artifact's data.
func folder(t testing.TB) string {
	t.Helper()
	return filepath.Join(shareddata.DataDir(t), "pollux", "osdi21")
}

// readApps returns the applications by name.
func readApps(t testing.TB) map[string]*App {
	t.Helper()
	profiles, err := speedup.ReadProfiles(os.DirFS(filepath.Join(folder(t), "traces")), "")
	if err != nil {
		t.Fatal(err)
	}
	apps := make(map[string]*App)
	for _, p := range profiles {
		l := p.Limits
		apps[p.Name] = &App{Name: p.Name, Start: l.Start, Max: l.Max, MinPerGPU: l.MinPerGPU, MaxPerGPU: l.MaxPerGPU,
			OneGPU: p.Name == "ncf", Steps: Triangulate(p.Steps), Statistics: p.Validation}
	}
	return apps
}

// readJobs returns a workload, such as workloads/workload-6.
func readJobs(t testing.TB, apps map[string]*App, name string) []Job {
	t.Helper()
	f, err := os.Open(filepath.Join(folder(t), name+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var jobs []Job
	for _, row := range rows[1:] {
		var n [3]int
		for i, cell := range []string{row[1], row[3], row[4]} {
			if n[i], err = strconv.Atoi(cell); err != nil {
				t.Fatal(err)
			}
		}
		jobs = append(jobs, Job{Name: row[0], App: apps[row[2]], Submit: int64(n[0]), GPUs: n[1], Batch: n[2]})
	}
	return jobs
}

// summary is what was published of a set of runs.
type summary struct {
	JCTs map[string]map[string]int64 `json:"jcts"`
	Avgs map[string]float64          `json:"avgs"`
	Mean float64                     `json:"mean"`
}

func readSummary(t testing.TB, run string) (s summary) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder(t), run, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// compare runs a policy on eight workloads of a load, and returns the mean completion times, published and ours, and
// how many jobs differ. The published ones are whole seconds.
func compare(t *testing.T, p Params, load, folder, run string) (want, got float64, differ int) {
	t.Helper()
	apps, published := readApps(t), readSummary(t, run)
	for w := 1; w <= 8; w++ {
		name := fmt.Sprintf("workload-%d", w)
		jobs := readJobs(t, apps, folder+"/"+name)
		res, err := Run(jobs, p)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range res.Jobs {
			if res.Jobs[i].JCT(&jobs[i]) != published.JCTs[name][jobs[i].Name] {
				n++
			}
		}
		t.Logf("%v, load %s, %s: %.3f s, published %.3f, %+.3f %%, %d of %d jobs differ", p.Policy, load, name,
			res.MeanJCT(jobs),
			published.Avgs[name], 100*(res.MeanJCT(jobs)/published.Avgs[name]-1), n, len(jobs))
		want, got, differ = want+published.Avgs[name]/8, got+res.MeanJCT(jobs)/8, differ+n
	}
	return want, got, differ
}

var loads = []struct{ load, folder string }{
	{"0.5", "workloads-0.5"}, {"1.0", "workloads"}, {"1.5", "workloads-1.5"}, {"2.0", "workloads-2.0"},
}

// Ensure that Tiresias finishes every job of the published runs at the published second, at half and at full load: 2 x
// 8 x 160 jobs. At higher loads a few jobs run on placements where the released interpolation is not ours (see Mesh).
func TestTiresiasGolden(t *testing.T) {
	for i, most := range []int{0, 0, 6, 2} {
		l := loads[i]
		want, got, differ := compare(t, Params{}, l.load, l.folder, "results-jobload/tiresias-"+l.load)
		if differ > most || math.Abs(got/want-1) > 1e-5 {
			t.Errorf("load %s: mean %.3f s, published %.3f, %d jobs differ", l.load, got, want, differ)
		}
	}
}

// Ensure that workload-6 comes out as published: Tiresias every job, Optimus within a hundredth, which is what its
// interpolated times are known to.
func TestWorkload6(t *testing.T) {
	jobs := readJobs(t, readApps(t), "workloads/workload-6")
	for policy, want := range map[Policy]float64{Tiresias: 3469.69375, Optimus: 5301.875} {
		res, err := Run(jobs, Params{Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		got := res.MeanJCT(jobs)
		if policy == Tiresias && got != want || math.Abs(got/want-1) > 0.01 {
			t.Errorf("%v: %v s, want %v", policy, got, want)
		}
	}
}

// Ensure that the mean of Optimus is that published within a hundredth at each load.
func TestOptimusGolden(t *testing.T) {
	for _, l := range loads {
		want, got, differ := compare(t, Params{Policy: Optimus}, l.load, l.folder, "results-jobload/optimus-"+l.load)
		t.Logf("load %s: mean %.2f s, published %.2f, %d of 1280 jobs differ", l.load, got, want, differ)
		if math.Abs(got/want-1) > 0.01 {
			t.Errorf("load %s: mean %.2f s, published %.2f", l.load, got, want)
		}
	}
}

// Ensure that Pollux, searching a sixth as much as released, comes within a tenth of what was published for workload-6.
// BenchmarkPollux searches as much as released.
func TestPolluxGolden(t *testing.T) {
	got, want := pollux(t, "workloads", "1.0", Search{40, 40})
	if math.Abs(got/want-1) > 0.1 {
		t.Errorf("%.1f s, published %.1f, want it within a tenth", got, want)
	}
}

// Ensure that Pollux takes longer at higher loads, and less long than the others were published to take there, however
// little it searches.
func TestPolluxLoads(t *testing.T) {
	last, run := 0.0, loads
	if testing.Short() {
		run = run[:2]
	}
	for _, l := range run {
		got, _ := pollux(t, l.folder, l.load, Search{16, 16})
		if got <= last {
			t.Errorf("load %s: %.1f s, no more than at the load before, %.1f", l.load, got, last)
		}
		last = got
		for _, other := range []string{"tiresias", "optimus"} {
			if than := readSummary(t, "results-jobload/"+other+"-"+l.load).Avgs["workload-6"]; got >= than {
				t.Errorf("load %s: %.1f s, %s %.1f, want it to take less", l.load, got, other, than)
			}
		}
	}
}

func pollux(t *testing.T, folder, load string, search Search) (got, want float64) {
	t.Helper()
	jobs := readJobs(t, readApps(t), folder+"/workload-6")
	res, err := Run(jobs, Params{Policy: Pollux, Search: search})
	if err != nil {
		t.Fatal(err)
	}
	got, want = res.MeanJCT(jobs), readSummary(t, "results-jobload/pollux-"+load).Avgs["workload-6"]
	t.Logf("load %s, search %v: %.1f s, published %.1f, %+.1f %%", load, search, got, want, 100*(got/want-1))
	return got, want
}

// BenchmarkPollux plays workload-6 as released, with another seed each time. jct-s is the mean of the completion times.
func BenchmarkPollux(b *testing.B) {
	jobs := readJobs(b, readApps(b), "workloads/workload-6")
	sum, n := 0.0, uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		res, err := Run(jobs, Params{Policy: Pollux, Seed: n})
		if err != nil {
			b.Fatal(err)
		}
		sum += res.MeanJCT(jobs)
		n++
	}
	b.ReportMetric(sum/float64(n), "jct-s")
}

func BenchmarkTiresias(b *testing.B) { benchmark(b, Tiresias) }

func BenchmarkOptimus(b *testing.B) { benchmark(b, Optimus) }

func benchmark(b *testing.B, policy Policy) {
	jobs := readJobs(b, readApps(b), "workloads/workload-6")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Run(jobs, Params{Policy: policy}); err != nil {
			b.Fatal(err)
		}
	}
}

// MeanJCT is the mean completion time in seconds over finished jobs, 0 if there is none.
func (r *Result) MeanJCT(jobs []Job) float64 {
	sum, n := int64(0), 0
	for i := range r.Jobs {
		if r.Jobs[i].Finish >= 0 {
			sum += r.Jobs[i].JCT(&jobs[i])
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return float64(sum) / float64(n)
}
