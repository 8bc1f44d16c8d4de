package trace

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/shareddata"
)

// everyFile says of each public file what it is: a format with so many jobs and rows left out, or no list of jobs. A
// path that ends with a slash stands for a folder whose files all hold as many jobs; 0 jobs means any number.
var everyFile = []struct {
	path, format  string
	jobs, leftOut int
	refused       string
}{
	{path: "philly/philly_gpu_jobs.csv.gz", format: "philly", jobs: 111549},
	{path: "philly/philly_pollux_subset.csv.gz", format: "philly-pollux", jobs: 82247},
	{path: "philly/vc_nodes_heliosartifact.csv", refused: "the number of nodes of each virtual cluster"},
	{path: "philly_vc/7f04ca_oct_nov.csv", format: "trainyard", jobs: 1098},
	{path: "philly_vc/2869ce_oct_nov.csv", format: "trainyard", jobs: 747},
	{path: "venus/venus_gpu_jobs.csv.gz", format: "venus", jobs: 125303},
	{path: "venus/venus_half_seed42.csv.gz", format: "pai", jobs: 62735},
	{path: "pai/pai_terminated_tasks_sample.csv.gz", format: "pai", jobs: 60105},
	{path: "openb/openb_pods_default.csv.gz", format: "openb", jobs: 6203, leftOut: 1949},
	{path: "openb/openb_nodes_gpu.csv", refused: "the nodes of a cluster"},
	{path: "spot2026/node_info.csv.gz", refused: "the nodes of a cluster"},
	{path: "acme/cluster_summary.csv", refused: "a summary of clusters"},
	{path: "acme/kalos_completed_319.csv", format: "kalos", jobs: 319},
	{path: "cdf/published_cdfs.csv", refused: "points of published distribution functions"},
	{path: "expected.csv", refused: "published results"},
	{path: "gavel/philly_vc_seed0.csv.gz", format: "gavel-philly", jobs: 15264},
	{path: "gavel/physical_artifact_evaluation.tsv", format: "gavel", jobs: 15},
	{path: "gavel/physical_max_min_fairness.tsv", format: "gavel", jobs: 96},
	{path: "gavel/physical_medium_test.tsv", format: "gavel", jobs: 20},
	{path: "gavel/physical_minimize_makespan.tsv", format: "gavel", jobs: 100},
	{path: "gavel/physical_small_test.tsv", format: "gavel", jobs: 20},
	{path: "muri/trace1.csv.gz", format: "muri", jobs: 1494},
	{path: "muri/trace3.csv.gz", format: "muri", jobs: 992},
	{path: "muri/cluster_trace_400.csv", format: "muri", jobs: 400},
	{path: "muri/n8g8.csv", refused: "a cluster of the Tiresias simulator"},
	{path: "tiresias/60_job.csv", format: "tiresias", jobs: 60},
	{path: "tiresias/n", refused: "a cluster of the Tiresias simulator"},
	{path: "tiresias/yarn-gput", refused: "a sample of job sizes"},
	{path: "elasticflow/elasticVpollux_e.csv", format: "elasticflow", jobs: 195},
	{path: "elasticflow/philly_103959.csv", format: "elasticflow", jobs: 876},
	{path: "synergy/static_100job_6_3.csv", format: "synergy", jobs: 100},
	{path: "shockwave/jobs_120.csv", format: "shockwave-table", jobs: 120},
	{path: "shockwave/jobs_220.csv", format: "shockwave-table", jobs: 220},
	{path: "pal/philly/", format: "pal", jobs: 160},
	{path: "pal/blox_exp/", format: "pal"},
	{path: "pal/shockwave/poisson_trace_120_lam1.csv", format: "blox", jobs: 120},
	{path: "pal/shockwave/poisson_trace_50_lam1.csv", format: "blox", jobs: 50},
	{path: "pollux/workloads/", format: "pollux", jobs: 160},
	{path: "pollux/workloads-0.5/", format: "pollux", jobs: 80},
	{path: "pollux/workloads-1.5/", format: "pollux", jobs: 240},
	{path: "pollux/workloads-2.0/", format: "pollux", jobs: 320},
	{path: "pollux/workloads-realistic/", format: "pollux", jobs: 160},
	{path: "sia/newtrace/", format: "pollux", jobs: 960},
	{path: "sia/philly/", format: "pollux", jobs: 160},
	{path: "sia/rate_20/", format: "pollux", jobs: 160},
	{path: "sia/saturn/", format: "pollux", jobs: 160},
}

// Ensure that every public file is read with the number of jobs it holds, or refused with what it is instead.
func TestEveryPublicFile(t *testing.T) {
	dir := filepath.Join(shareddata.DataDir(t), "traces")
	met := make(map[string]bool)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		name = filepath.ToSlash(name)
		if name == "README.md" {
			return nil
		}
		for _, c := range everyFile {
			if strings.HasPrefix(name, c.path) {
				met[c.path] = true
				t.Run(name, func(t *testing.T) { checkFile(t, path, c.format, c.jobs, c.leftOut, c.refused) })
				return nil
			}
		}
		t.Errorf("%s: nothing is known of it", name)
		return nil
	})
	if err != nil || len(met) != len(everyFile) {
		t.Errorf("%d of %d files met (%v)", len(met), len(everyFile), err)
	}
}

func checkFile(t *testing.T, path, format string, jobs, leftOut int, refused string) {
	got, err := Read(path, Options{Steps: EveryStep(100 * time.Millisecond)})
	if refused != "" {
		if err == nil || !strings.Contains(err.Error(), "line 1: no list of jobs: "+refused) {
			t.Errorf("error %v, want it to say %s", err, refused)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	out := 0
	for _, c := range got.LeftOut {
		out += c.Jobs
	}
	if got.Format != format || jobs > 0 && len(got.Jobs) != jobs || out != leftOut {
		t.Errorf("format %s, %d jobs, %d left out, want %s, %d, %d", got.Format, len(got.Jobs), out, format, jobs,
			leftOut)
	}
	checkPromises(t, got)
	if !got.Profiled {
		roundTrip(t, got)
	}
}
