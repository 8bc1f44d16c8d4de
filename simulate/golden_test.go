package simulate

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// wantGolden is the number of files of recorded outcomes of the released simulator.
const wantGolden = 207

// goldenRun is the meaning of one file name, TRACE[_CLUSTER]_SCHEDULE[-KNOB]_PLACEMENT[_qLIMITS].csv, in the words of
// our command line.
type goldenRun struct {
	name, trace, system string
	cluster, full       string // shorthand; YAML with racks, CPUs and memory, for placement yarn alone
	settings            map[string]string
	sizes               *dist.Empirical
}

var goldenFile = regexp.MustCompile(`^(60|syn1|syn2|ex)(?:_(n1g4|n32g4|cluster_spec|x1x2x4x64x256|x1x4x4x64x256))?` +
	`_([a-z]+(?:-[a-z]+)*)(?:-(\d+))?_(count|yarn|)_?(q?[-\d]*)\.csv$`)

var goldenClusters = map[string]string{"n1g4": "1x4", "x1x2x4x64x256": "2x4", "x1x4x4x64x256": "4x4",
	"cluster_spec": "16x4",
	"n32g4":        "32x4", "syn1": "15x4", "syn2": "15x4", "ex": "1x2"}

// goldenSystems are the released simulator's schedules by our names.
var goldenSystems = map[string]string{"fifo": "fifo", "fjf": "fifo-skip", "sjf": "fewest-gpus", "shortest": "srtf",
	"shortest-gpu": "srsf", "dlas": "tiresias-las", "dlas-gpu": "tiresias-las", "dlas-gpu-gittins": "tiresias-gittins"}

func newGoldenRun(file string, yarnSizes *dist.Empirical) (*goldenRun, error) {
	m := goldenFile.FindStringSubmatch(file)
	if m == nil {
		return nil, fmt.Errorf("%s: name not understood", file)
	}
	schedule, knob, placement, limits := m[3], m[4], m[5], m[6]
	g := &goldenRun{name: file, trace: m[1], system: goldenSystems[schedule],
		cluster:  goldenClusters[cmp.Or(m[2], m[1])],
		settings: map[string]string{}}
	if g.system == "" || g.cluster == "" {
		return nil, fmt.Errorf("%s: schedule %q, cluster %q not understood", file, schedule, g.cluster)
	}
	if placement == "yarn" {
		g.settings["placement"] = "yarn"
		nodes, _, _ := strings.Cut(g.cluster, "x")
		g.full = fmt.Sprintf("nodes: [{count: %s, gpus: 4, rack: switch0, cpus: 64, memory_gb: 256}]", nodes)
	}
	if !strings.HasPrefix(schedule, "dlas") {
		return g, nil
	}
	g.settings["thresholds"] = goldenThresholds(g.trace, limits)
	if schedule == "dlas" {
		g.settings["unit"] = "seconds"
	}
	if knob != "" {
		g.settings["promote_knob"] = strings.Replace(knob, "05", "0.5", 1)
	}
	if schedule == "dlas-gpu-gittins" {
		g.sizes = yarnSizes
		g.settings["delta"] = "3250"
		if g.trace == "ex" {
			g.sizes, _ = dist.NewEmpirical([]float64{400, 800, 1200})
			g.settings["delta"] = "400"
		}
	}
	return g, nil
}

// goldenThresholds reads "q130-500" (K = 3), "q1" (K = 1), "" (the released default) and, in trace ex, "400-8003",
// whose last digit is K.
func goldenThresholds(trace, s string) string {
	if s == "" {
		return "3250,7200"
	}
	if s == "q1" {
		return ""
	}
	if trace == "ex" {
		k := int(s[len(s)-1] - '0')
		list := strings.Split(s[:len(s)-1], "-")
		return strings.Join(list[:k-1], ",")
	}
	return strings.ReplaceAll(strings.TrimPrefix(s, "q"), "-", ",")
}

// Ensure that every recorded outcome of the released simulator is reproduced by the preset: every job, every column. A
// run that ends early holds only the jobs that finished. Reference: Gu et al., NSDI'19, released simulator, commit
// 959f9b0.
func TestTiresiasPresetGolden(t *testing.T) {
	dir := shareddata.DataDir(t)
	traces := map[string]*trace.Trace{
		"60":   mustRead(t, filepath.Join(dir, "traces/tiresias/60_job.csv")),
		"syn1": mustRead(t, filepath.Join(dir, "tiresias/syn480_s1.csv")),
		"syn2": mustRead(t, filepath.Join(dir, "tiresias/syn480_s2.csv")),
		"ex":   mustRead(t, filepath.Join(dir, "tiresias/ex.csv")),
	}
	sizes := mustSizes(t, filepath.Join(dir, "traces/tiresias/yarn-gput1000.csv"))
	paths, err := filepath.Glob(filepath.Join(dir, "tiresias/golden/*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		g, err := newGoldenRun(filepath.Base(path), sizes)
		if err != nil {
			t.Error(err)
			continue
		}
		want := goldenRows(t, path)
		compareGolden(t, g.name, g.run(t, traces[g.trace], mustLoad(t, g.cluster)), want)
		if g.full != "" {
			c, err := cluster.Parse([]byte(g.full), "full.yaml")
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, g.name+" with racks, CPUs and memory", g.run(t, traces[g.trace], c), want)
		}
	}
	if len(paths) != wantGolden {
		t.Errorf("compared %d files, want %d", len(paths), wantGolden)
	}
}

func (g *goldenRun) run(t *testing.T, tr *trace.Trace, c *cluster.Cluster) []metrics.Job {
	t.Helper()
	s := Request{Trace: tr, Cluster: c, System: g.system, Settings: g.settings, Preset: "tiresias"}
	if g.sizes != nil {
		s.Files = system.Distribution.Holds(g.sizes)
	}
	return simulate(t, &s).PerJob
}

// compareGolden reports the first difference of a file.
func compareGolden(t *testing.T, name string, got []metrics.Job, want map[string]string) {
	t.Helper()
	finished := 0
	for i := range got {
		line := goldenLine(&got[i])
		if line != want[got[i].Name] {
			t.Errorf("%s: job %s:\n got %q\nwant %q", name, got[i].Name, line, want[got[i].Name])
			return
		}
		if line != "" {
			finished++
		}
	}
	if finished != len(want) {
		t.Errorf("%s: %d jobs finished, want %d", name, finished, len(want))
	}
}

// goldenLine is empty for an unfinished job: the released simulator writes nothing about it.
func goldenLine(j *metrics.Job) string {
	if j.Outcome != sched.Finished {
		return ""
	}
	sec := sched.FormatSeconds
	return fmt.Sprintf("%s,%s,%s,%s,%s,%d,%d", j.Name, sec(time.Duration(j.Start)), sec(time.Duration(j.Finish)),
		sec(j.JCT()),
		sec(j.Queue()), j.Preemptions, j.Promotions)
}

// goldenRows returns the lines of a file of recorded outcomes by job.
func goldenRows(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil || len(all) < 2 {
		t.Fatalf("%s: %d lines, error %v", path, len(all), err)
	}
	const columns = "job_id,start_time,end_time,jct,pending_time,preempt,promote"
	if got := strings.Join(all[0], ","); got != columns {
		t.Fatalf("%s: columns %s, want %s", path, got, columns)
	}
	rows := map[string]string{}
	for _, row := range all[1:] {
		rows[row[0]] = strings.Join(row, ",")
	}
	return rows
}

// Ensure that one run is visible in the code and fails readably: JCTs in seconds of jobs 0 to 59 of the released 60-job
// trace, two queues, limit 250 GPU-seconds, 8 GPUs.
func TestTiresiasPresetSixtyJobs(t *testing.T) {
	tr := mustRead(t, filepath.Join(shareddata.DataDir(t), "traces/tiresias/60_job.csv"))
	s := Request{Trace: tr, Cluster: mustLoad(t, "2x4"), System: "tiresias-las", Preset: "tiresias",
		Settings: map[string]string{"thresholds": "250"}}
	want := "164 3910 127 121 121 3888 121 124 155 126 230 371 131 3795 121 180 416 140 212 125 581 126 123 3541 " +
		"211 121 121 " +
		"3491 152 121 141 121 3407 121 3590 146 1417 160 121 121 122 123 263 209 158 121 121 3247 3282 2380 1030 " +
		"130 1006 " +
		"121 1036 3130 133 979 1014 122"
	var got []string
	for _, j := range simulate(t, &s).PerJob {
		got = append(got, sched.FormatSeconds(j.JCT()))
	}
	if strings.Join(got, " ") != want {
		t.Errorf("JCTs\n got %s\nwant %s", strings.Join(got, " "), want)
	}
}

func simulate(t testing.TB, s *Request) *Outcome {
	t.Helper()
	out, err := s.Run(context.Background())
	if err != nil {
		t.Fatalf("%s under preset %q: %v", s.System, s.Preset, err)
	}
	return out
}

func mustRead(t testing.TB, path string) *trace.Trace {
	t.Helper()
	tr, err := trace.Read(path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func mustLoad(t testing.TB, spec string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Load(spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustSizes(t testing.TB, path string) *dist.Empirical {
	t.Helper()
	return mustReadAs(t, path, dist.Read)
}

// mustReadAs reads a file by a reader that takes its text and its name.
func mustReadAs[T any](t testing.TB, path string, read func(r io.Reader, name string) (T, error)) T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, err := read(f, path)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
