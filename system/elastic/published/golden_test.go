package published

import (
	"encoding/csv"
	"encoding/json"
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
			OneGPU: p.Name == "ncf", Steps: p.Steps, Statistics: p.Validation}
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

func TestProbe(t *testing.T) {
	apps := readApps(t)
	for _, pol := range []Policy{Tiresias, Optimus} {
		jobs := readJobs(t, apps, "workloads/workload-6")
		s := readSummary(t, "results-jobload/"+pol.String()+"-1.0")
		res, err := Run(jobs, Params{Policy: pol})
		if err != nil {
			t.Fatal(err)
		}
		differ := 0
		gpu := int64(0)
		for i := range res.Jobs {
			gpu += res.Jobs[i].GPUSeconds
			if got, want := res.Jobs[i].JCT(&jobs[i]), s.JCTs["workload-6"][jobs[i].Name]; got != want {
				if differ++; differ < 5 {
					t.Log(jobs[i].Name, got, want)
				}
			}
		}
		t.Log(pol, res.MeanJCT(jobs), s.Avgs["workload-6"], differ, float64(gpu)/3600)
	}
}
