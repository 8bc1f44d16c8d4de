package simulate

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// bloxNames are the deterministic placements of the recorded runs by our names.
var bloxNames = map[string]string{"PAL": "pal", "PMFirst": "pm-first", "Default-Packed-S": "packed-sticky",
	"Default-Packed-NS": "packed"}

// wantBlox is the number of deterministic recorded runs: 6 workloads x 4 placements x 2 rounds, of 160 jobs each.
const wantBlox = 48

// Ensure that the preset finishes every job of every deterministic recorded run when the artifact does, binning raw
// scores itself, and gives the spot values of averages. Reference: SC'24 artifact, tag artifact-v1.4, 64 GPUs, FIFO, L
// = 1.7, trace repeated.
func TestBloxPresetGolden(t *testing.T) {
	dir := filepath.Join(shareddata.DataDir(t), "pal")
	want := map[string]map[string]float64{}
	for _, row := range csvRows(t, filepath.Join(dir, "golden/golden-sia-fifo.csv"),
		"round_s,workload,policy,job,submit_s,finish_s") {
		if name := bloxNames[row[2]]; name != "" {
			key := strings.Join([]string{row[0], row[1], name}, "/")
			if want[key] == nil {
				want[key] = map[string]float64{}
			}
			finish, err := strconv.ParseFloat(row[5], 64)
			if err != nil {
				t.Fatal(err)
			}
			want[key][row[3]] = finish
		}
	}
	scores := mustScores(t, filepath.Join(dir, "golden/artifact-gpus-64.csv"))
	c := mustLoad(t, "16x4")
	rows := 0
	for key, finish := range want {
		part := strings.Split(key, "/")
		round, err := time.ParseDuration(part[0] + "s")
		if err != nil {
			t.Fatal(err)
		}
		s := Request{Trace: mustRead(t, filepath.Join(dir, "traces/workload-"+part[1]+".csv")), Cluster: c,
			System: part[2],
			Preset: "blox-pal", Round: round, Scores: scores}
		out := simulate(t, &s)
		for _, j := range out.PerJob {
			rows++
			if got := j.Finish.Seconds(); got != finish[j.Name] || len(out.PerJob) != len(finish) {
				t.Errorf("%s: job %s of %d finishes at %v, want %v of %d", key, j.Name, len(out.PerJob), got,
					finish[j.Name], len(finish))
				break
			}
		}
		if key == "300/1/pal" && (out.AvgJCT != 25204.74375 || out.P99JCT != 120164 || out.Makespan != 225802) {
			t.Errorf("%s: average %v, p99 %v, makespan %v", key, out.AvgJCT, out.P99JCT, out.Makespan)
		}
	}
	if len(want) != wantBlox || rows != wantBlox*160 {
		t.Errorf("compared %d runs, %d rows, want %d, %d", len(want), rows, wantBlox, wantBlox*160)
	}
}

// Ensure that the other orders, tracked jobs and the trace played once go through the preset as well: averages of the
// first 40 jobs of workload 1. Reference: the same; spot values under FIFO and, without a repeated trace, averages of
// all 160 jobs.
func TestBloxPresetSpots(t *testing.T) {
	dir := filepath.Join(shareddata.DataDir(t), "pal")
	scores := mustScores(t, filepath.Join(dir, "golden/artifact-gpus-64.csv"))
	tr := mustRead(t, filepath.Join(dir, "traces/workload-1.csv"))
	for _, c := range []struct {
		system, order, wrap, tracked, want string
	}{
		{"packed-sticky", "fifo", "on", "40", "3404.3"},
		{"packed", "fifo", "on", "40", "3344.3"},
		{"pm-first", "fifo", "on", "40", "3336.8"},
		{"packed-sticky", "las", "on", "40", "5211.8"},
		{"pal", "las", "on", "40", "4806.8"},
		{"packed-sticky", "srtf", "on", "40", "4131.8"},
		{"pal", "srtf", "on", "40", "4056.8"},
		{"pal", "las", "off", "0", "6751.0"},
	} {
		s := Request{Trace: tr, Cluster: mustLoad(t, "16x4"), System: c.system, Preset: "blox-pal", Scores: scores,
			Settings: map[string]string{"order": c.order, "wrap": c.wrap, "tracked": c.tracked}}
		if got := fmt.Sprintf("%.1f", simulate(t, &s).AvgJCT); got != c.want {
			t.Errorf("%+v: average %s", c, got)
		}
	}
}

// Ensure that what the released simulator knows nothing of is refused, by name.
func TestBloxPresetRefuses(t *testing.T) {
	tr := mustTrace(t, "job_id,num_gpus,submit_time,duration,model\n0,2,0,100,BERT\n")
	good := func() Request {
		return Request{Trace: tr, Cluster: mustLoad(t, "2x2"), System: "pal", Preset: "blox-pal",
			Scores: alikeScores(4), Settings: map[string]string{}}
	}
	if s := good(); simulate(t, &s).PerJob[0].Finish != 300*sched.Time(time.Second) {
		t.Error("a job of 18 s ends at the end of the first round")
	}
	for wanted, change := range map[string]func(*Request){
		"--variability":    func(s *Request) { s.Scores = nil },
		"scores of 3 GPUs": func(s *Request) { s.Scores = alikeScores(3) },
		"no class \"D\"": func(s *Request) {
			s.Scores.Classes, s.Scores.PM = s.Scores.Classes[:3],
				s.Scores.PM[:3]
		},
		"want all nodes alike": func(s *Request) { s.Cluster = mustLoad(t, "1x1+1x3") },
		"nothing of failures": func(s *Request) {
			s.Cluster.Failures = cluster.Failures{MTBF: time.Hour,
				Repair: time.Minute}
		},
		"no events from outside":      func(s *Request) { s.Inject = []sched.Event{{Kind: sched.PriceChanged}} },
		"want whole seconds":          func(s *Request) { s.Round = time.Second / 2 },
		"restart_overhead=62, want 0": func(s *Request) { s.Settings["restart_overhead"] = "62" },
		"move_cost=1, want 0":         func(s *Request) { s.Settings["move_cost"] = "1" },
		"wrap=\"yes\"":                func(s *Request) { s.Settings["wrap"] = "yes" },
		"order=\"srsf\"":              func(s *Request) { s.Settings["order"] = "srsf" },
		"tracked 2, want":             func(s *Request) { s.Settings["tracked"] = "2" },
		"locality penalty 0.5":        func(s *Request) { s.Settings["locality_penalty"] = "0.5" },
		"no key \"wrap\"":             func(s *Request) { s.Preset, s.Settings["wrap"] = "", "on" },
		"has no system \"fifo\"":      func(s *Request) { s.System = "fifo" },
		"whose iteration time": func(s *Request) {
			s.Trace = mustTrace(t, "job_id,submit_s,num_gpus,duration_s,model\n0,0,1,5,vgg16\n")
		},
		"gpus 5, want 1 to 4": func(s *Request) {
			s.Trace = mustTrace(t, "job_id,num_gpus,submit_time,duration,model\n0,5,0,100,BERT\n")
		},
	} {
		s := good()
		change(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("got %v, want ... %s ...", err, wanted)
		}
	}
}

// alikeScores are those of GPUs that do not differ.
func alikeScores(gpus int) *variability.Scores {
	s := &variability.Scores{Name: "alike", Classes: []string{"A", "B", "C", "D"}, PM: make([][]float64, 4)}
	for g := range gpus {
		s.GPUs = append(s.GPUs, variability.GPU{Name: fmt.Sprint(g)})
		for c := range s.PM {
			s.PM[c] = append(s.PM[c], 1)
		}
	}
	return s
}

func mustScores(t testing.TB, path string) *variability.Scores {
	t.Helper()
	return mustReadAs(t, path, variability.ReadScores)
}

// csvRows returns the rows below a header.
func csvRows(t testing.TB, path, header string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil || len(all) < 2 || strings.Join(all[0], ",") != header {
		t.Fatalf("%s: %d lines, error %v", path, len(all), err)
	}
	return all[1:]
}

func mustTrace(t testing.TB, text string) *trace.Trace {
	t.Helper()
	tr, err := trace.Parse(strings.NewReader(text), "jobs.csv", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}
