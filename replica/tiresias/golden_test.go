package tiresias

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
)

// Files of recorded outcomes of the released simulator that must be found and compared, by family.
const (
	wantLoopFiles = 170 // dlas, dlas-gpu, dlas-gpu-gittins
	wantTwinFiles = 37  // fifo, fjf, sjf, shortest, shortest-gpu
)

// golden is the meaning of one file name: TRACE[_CLUSTER]_SCHEDULE[-KNOB]_PLACEMENT[_qLIMITS].csv.
type golden struct {
	path, trace       string
	gpus, gpusPerNode int
	schedule          string // without knob
	knob              float64
	yarn              bool
	limits            []int64
}

var goldenName = regexp.MustCompile(`^(60|syn1|syn2|ex)(?:_(n1g4|n32g4|cluster_spec|x1x2x4x64x256|x1x4x4x64x256))?` +
	`_([a-z]+(?:-[a-z]+)*)(?:-(\d+))?_(count|yarn|)_?(q?[-\d]*)\.csv$`)

var goldenGPUs = map[string]int{"n1g4": 4, "x1x2x4x64x256": 8, "x1x4x4x64x256": 16, "cluster_spec": 64, "n32g4": 128,
	"syn1": 60, "syn2": 60, "ex": 2}

func parseGolden(path string) (golden, error) {
	m := goldenName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return golden{}, fmt.Errorf("golden file %s: name not understood", path)
	}
	trace, cluster, schedule, knob, placement, limits := m[1], m[2], m[3], m[4], m[5], m[6]
	g := golden{path: path, trace: trace, gpus: goldenGPUs[cmp.Or(cluster, trace)], gpusPerNode: 4,
		schedule: schedule, yarn: placement == "yarn"}
	if g.gpus == 0 {
		return golden{}, fmt.Errorf("golden file %s: cluster not understood", path)
	}
	if knob == "05" {
		g.knob = 0.5
	} else if knob != "" {
		g.knob = float64(ints(knob)[0])
	}
	g.limits = goldenLimits(trace, limits)
	return g, nil
}

// goldenLimits reads "q130-500" (K = 3), "q1" (K = 1), "" (the released default) and, in trace ex, "400-8003", whose
// last digit is K.
func goldenLimits(trace, s string) []int64 {
	switch {
	case s == "":
		return []int64{3250, 7200}
	case s == "q1":
		return nil
	case trace == "ex":
		k := int(s[len(s)-1] - '0')
		return ints(s[:len(s)-1])[:k-1]
	}
	return ints(strings.TrimPrefix(s, "q"))
}

func ints(s string) (list []int64) {
	for f := range strings.SplitSeq(s, "-") {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			panic(err)
		}
		list = append(list, n)
	}
	return list
}

func (g golden) params(samples []int64) Params {
	p := Params{GPUs: g.gpus, Limits: g.limits, Knob: g.knob, Seconds: g.schedule == "dlas"}
	if g.schedule == "dlas-gpu-gittins" {
		p.Gittins, p.Samples = true, samples
		if g.trace == "ex" {
			p.Delta, p.Samples = 400, []int64{400, 800, 1200}
		}
	}
	return p
}

// outcomes plays the run that the file recorded, with Run or, for the schedules Run does not know, with the test's
// twin.
func (g golden) outcomes(jobs []Job, samples []int64) ([]Outcome, error) {
	switch g.schedule {
	case "dlas", "dlas-gpu", "dlas-gpu-gittins":
		return Run(jobs, g.params(samples)), nil
	case "fifo", "fjf":
		return twinQueue(jobs, twinCluster(g), g.schedule == "fjf"), nil
	}
	key, ok := twinKeys[g.schedule]
	if !ok || g.yarn {
		return nil, fmt.Errorf("golden file %s: schedule not understood", g.path)
	}
	return twinShortest(jobs, g.gpus, key), nil
}

func (g golden) isLoop() bool { return strings.HasPrefix(g.schedule, "dlas") }

// Ensure that every recorded outcome of the released simulator is reproduced: every job, every column.
// Reference: Gu et al., NSDI'19, released simulator, commit 959f9b0.
func TestGolden(t *testing.T) {
	dir := shareddata.DataDir(t)
	traces := map[string][]Job{
		"60":   readJobs(t, filepath.Join(dir, "traces/tiresias/60_job.csv")),
		"syn1": readJobs(t, filepath.Join(dir, "tiresias/syn480_s1.csv")),
		"syn2": readJobs(t, filepath.Join(dir, "tiresias/syn480_s2.csv")),
		"ex":   readJobs(t, filepath.Join(dir, "tiresias/ex.csv")),
	}
	samples := readSamples(t, dir)
	paths, err := filepath.Glob(filepath.Join(dir, "tiresias/golden/*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	loopFiles, twinFiles, rows := 0, 0, 0
	for _, path := range paths {
		g, err := parseGolden(path)
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := g.outcomes(traces[g.trace], samples)
		if err != nil {
			t.Error(err)
			continue
		}
		rows += compareGolden(t, path, traces[g.trace], got)
		if g.isLoop() {
			loopFiles++
		} else {
			twinFiles++
		}
	}
	t.Logf("compared %d files of the dlas family, %d of the others, %d rows", loopFiles, twinFiles, rows)
	if loopFiles < wantLoopFiles || twinFiles < wantTwinFiles {
		t.Errorf("compared %d + %d files, want at least %d + %d", loopFiles, twinFiles, wantLoopFiles, wantTwinFiles)
	}
}

// compareGolden reports the first difference of the file and returns its number of rows.
func compareGolden(t *testing.T, path string, jobs []Job, got []Outcome) int {
	t.Helper()
	header, rows := readCSV(t, path)
	const columns = "job_id,start_time,end_time,jct,pending_time,preempt,promote"
	if strings.Join(header, ",") != columns {
		t.Fatalf("%s: columns %v, want %s", path, header, columns)
	}
	want := map[string]string{}
	for _, row := range rows {
		want[row[0]] = strings.Join(row, ",")
	}
	name := filepath.Base(path)
	for i, o := range got {
		if line := goldenLine(jobs[i], o); line != want[o.ID] {
			t.Errorf("%s: job %s: got %q, want %q", name, o.ID, line, want[o.ID])
			return len(rows)
		}
		delete(want, o.ID)
	}
	if len(want) > 0 {
		t.Errorf("%s: %d rows for jobs not in the trace", name, len(want))
	}
	return len(rows)
}

// goldenLine is empty for an unfinished job: the released simulator writes nothing about it.
func goldenLine(j Job, o Outcome) string {
	if !o.Finished {
		return ""
	}
	return fmt.Sprintf("%s,%d,%d,%d,%d,%d,%d", o.ID, o.Start, o.End, o.End-j.Submit, o.Pending, o.Preemptions,
		o.Promotions)
}

func readCSV(t testing.TB, path string) (header []string, rows [][]string) {
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
	return all[0], all[1:]
}

func readJobs(t testing.TB, path string) (jobs []Job) {
	t.Helper()
	header, rows := readCSV(t, path)
	column := func(name string) int {
		i := slices.Index(header, name)
		if i < 0 {
			t.Fatalf("%s: no column %s", path, name)
		}
		return i
	}
	id, gpus, submit, duration := column("job_id"), column("num_gpu"), column("submit_time"), column("duration")
	for _, row := range rows {
		jobs = append(jobs, Job{ID: row[id], GPUs: int(ints(row[gpus])[0]), Submit: ints(row[submit])[0],
			Duration: ints(row[duration])[0]})
	}
	return jobs
}

func readSamples(t testing.TB, dir string) (samples []int64) {
	t.Helper()
	_, rows := readCSV(t, filepath.Join(dir, "traces/tiresias/yarn-gput1000.csv"))
	for _, row := range rows {
		samples = append(samples, ints(row[0])[0])
	}
	return samples
}

// Ensure that one run is visible in the code and fails readably: JCTs in seconds of jobs 0 to 59 of the released 60-job
// trace, dlas-gpu, two queues, limit 250 GPU-seconds, 8 GPUs.
func TestSixtyJobs(t *testing.T) {
	jobs := readJobs(t, filepath.Join(shareddata.DataDir(t), "traces/tiresias/60_job.csv"))
	want := []int64{164, 3910, 127, 121, 121, 3888, 121, 124, 155, 126, 230, 371, 131, 3795, 121, 180, 416, 140, 212,
		125,
		581, 126, 123, 3541, 211, 121, 121, 3491, 152, 121, 141, 121, 3407, 121, 3590, 146, 1417, 160, 121, 121, 122,
		123,
		263, 209, 158, 121, 121, 3247, 3282, 2380, 1030, 130, 1006, 121, 1036, 3130, 133, 979, 1014, 122}
	var got []int64
	for i, o := range Run(jobs, Params{GPUs: 8, Limits: []int64{250}}) {
		got = append(got, o.End-jobs[i].Submit)
	}
	if !slices.Equal(got, want) {
		t.Errorf("JCTs\n got %d\nwant %d", got, want)
	}
}

// Ensure that the table of the released Gittins index has the values recorded from it, over the 1001 published samples.
func TestRankTable(t *testing.T) {
	table := newRankTable(readSamples(t, shareddata.DataDir(t)), DefaultDelta)
	for _, c := range []struct {
		service int64
		want    float64
	}{{0, 299.7}, {120, 299.7}, {500, 249.8}, {1000, 191.5}, {2000, 129.4}, {3250, 87.4}, {5000, 58.8}, {10000, 29.9},
		{18000, 11.5}, {100000, 4.1}, {1 << 40, 0}} {
		if got, _ := table.at(c.service); math.Abs(got-c.want) > 0.05 {
			t.Errorf("index at %d GPU-s: %v, want %v", c.service, got, c.want)
		}
	}
}
