package published

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
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

// compare runs a policy on eight workloads of a load, and returns the mean completion times, published and ours, and how many jobs
// differ. The published ones are whole seconds.
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
		t.Logf("%v, load %s, %s: %.3f s, published %.3f, %+.3f %%, %d of %d jobs differ", p.Policy, load, name, res.MeanJCT(jobs),
			published.Avgs[name], 100*(res.MeanJCT(jobs)/published.Avgs[name]-1), n, len(jobs))
		want, got, differ = want+published.Avgs[name]/8, got+res.MeanJCT(jobs)/8, differ+n
	}
	return want, got, differ
}

var loads = []struct{ load, folder string }{
	{"0.5", "workloads-0.5"}, {"1.0", "workloads"}, {"1.5", "workloads-1.5"}, {"2.0", "workloads-2.0"},
}

func TestLoads(t *testing.T) {
	for _, policy := range []Policy{Tiresias, Optimus} {
		for _, l := range loads {
			want, got, differ := compare(t, Params{Policy: policy}, l.load, l.folder, "results-jobload/"+policy.String()+"-"+l.load)
			t.Logf("%v, load %s: mean %.2f, published %.2f, %d jobs differ", policy, l.load, got, want, differ)
		}
	}
}
