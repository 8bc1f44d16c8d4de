package simulate

import (
	"compress/gzip"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/shareddata"
	replica "github.com/trainyard/trainyard/replica/muri"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// Ensure that the preset muri gives what the authors print of SRTF, SRSF and Tiresias on two virtual clusters of the
// Philly trace, with the real arrivals and with all jobs submitted at once: 36 figures, to a microsecond or their last
// digit.
//
// Reference: Zhao et al., SIGCOMM'22, figures 9 and 10 (Rivendile/Muri, simulator/draw_fig9-10.py, commit 4e69a78c).
func TestMuriPreset(t *testing.T) {
	dir := filepath.Join(shareddata.DataDir(t), "traces")
	want := muriExpected(t, filepath.Join(dir, "expected.csv"))
	policies := map[string]string{"srtf": "srtf", "srsf": "srsf (shortest-gpu)",
		"tiresias-las": "tiresias (dlas-gpu, yarn placement)"}
	compared := 0
	for _, file := range []string{"trace1", "trace3"} {
		for _, atOnce := range []bool{false, true} {
			tr := readMuri(t, filepath.Join(dir, "muri", file+".csv.gz"), atOnce)
			what := "muri/" + file + ".csv"
			if atOnce {
				what += " with every submit_time set to 0"
			}
			for sys, policy := range policies {
				s := Request{Trace: tr, Cluster: mustLoad(t, "8x8"), System: sys, Preset: "muri"}
				r := simulate(t, &s).Result
				if r.Finished != len(tr.Jobs) {
					t.Errorf("%s, %s: %d of %d jobs finished", what, sys, r.Finished, len(tr.Jobs))
				}
				for metric, got := range map[string]float64{"avg_jct_s": r.AvgJCT, "makespan_s": r.Makespan,
					"p99_jct_s": r.P99JCT} {
					x, ok := want[[3]string{what, policy, metric}]
					// printed with 9 to 15 digits
					if compared++; !ok || math.Abs(got/x-1) > 1e-9 {
						t.Errorf("%s, %s: %s %.6f, published %v", what, sys, metric, got, x)
					}
				}
			}
		}
	}
	if compared != 36 {
		t.Errorf("compared %d figures, want 36", compared)
	}
}

// Ensure that the engine, counting GPUs and with free restarts, gives average JCTs within 10 % of the published ones,
// and that what is between them is two quirks: without the cost of passes and with iterations as measured, the replica
// gives what the engine does.
func TestMuriInTheEngine(t *testing.T) {
	dir := filepath.Join(shareddata.DataDir(t), "traces")
	want := muriExpected(t, filepath.Join(dir, "expected.csv"))
	for _, file := range []string{"trace1", "trace3"} {
		tr := readMuri(t, filepath.Join(dir, "muri", file+".csv.gz"), false)
		jobs, err := muriJobs(tr)
		if err != nil {
			t.Fatal(err)
		}
		for i := range jobs {
			jobs[i].Iterations, jobs[i].Iteration, jobs[i].Overhead = tr.Jobs[i].Duration.Seconds(), 1, 0
		}
		for policy, c := range []struct{ system, name string }{
			replica.SRTF:     {"srtf", "srtf"},
			replica.SRSF:     {"srsf", "srsf (shortest-gpu)"},
			replica.Tiresias: {"tiresias-las", "tiresias (dlas-gpu, yarn placement)"},
		} {
			s := Request{Trace: tr, Cluster: mustLoad(t, "8x8"), System: c.system, Settings: counted}
			got, printed := simulate(t, &s).AvgJCT, want[[3]string{"muri/" + file + ".csv", c.name, "avg_jct_s"}]
			if !(math.Abs(got/printed-1) < .10) {
				t.Errorf("%s, %s: average JCT %.0f, published %.0f", file, c.system, got, printed)
			}
			twin := 0.0
			for i, o := range replica.Run(jobs, replica.Params{Policy: replica.Policy(policy), Nodes: 8, NodeGPUs: 8}) {
				twin += (o.Finish - jobs[i].Submit) / float64(len(jobs))
			}
			t.Logf("%s, %s: %.0f, published %.0f, %+.1f %%; replica without quirks %.0f", file, c.system, got, printed,
				100*(got/printed-1), twin)
			if math.Abs(got/twin-1) > 1e-4 {
				t.Errorf("%s, %s: average JCT %.1f in the engine, %.1f in the replica without quirks", file, c.system,
					got, twin)
			}
		}
	}
}

// Ensure that the engine decides what the replica does where the released loop has no quirks: passes cost nothing, and
// jobs of one GPU, all of different lengths, fit wherever there is room.
func TestMuriReplicaAgainstEngine(t *testing.T) {
	for seed := range uint64(20) {
		tr := trace.Generate(trace.Generator{Seed: seed, Jobs: 200, Load: 1.2, GPUs: 8,
			Durations: trace.Pareto{Shape: .8, Min: 30, Max: 7200}})
		jobs := make([]replica.Job, len(tr.Jobs))
		for i := range tr.Jobs {
			j := &tr.Jobs[i]
			jobs[i] = replica.Job{ID: j.Spec.Name, GPUs: 1, Submit: time.Duration(j.Spec.Submit).Seconds(),
				Iterations: j.Duration.Seconds(), Iteration: 1}
		}
		for sys, policy := range map[string]replica.Policy{"srtf": replica.SRTF, "srsf": replica.SRSF} {
			out := replica.Run(jobs, replica.Params{Policy: policy, Nodes: 2, NodeGPUs: 4})
			s := Request{Trace: tr, Cluster: mustLoad(t, "2x4"), System: sys,
				Settings: map[string]string{"restart_overhead": "0"}}
			for i, j := range simulate(t, &s).PerJob {
				if math.Abs(time.Duration(j.Finish).Seconds()-out[i].Finish) > 1e-5 ||
					int(j.Preemptions) != out[i].Preemptions {
					t.Errorf("seed %d, %s, job %d: the engine ends it at %v after %d preemptions, the replica at %v "+
						"after %d",
						seed, sys, i, j.Finish, j.Preemptions, out[i].Finish, out[i].Preemptions)
					break
				}
			}
		}
	}
}

// Ensure that the preset refuses what the released simulator knows nothing of.
func TestMuriRefusals(t *testing.T) {
	good := func() Request {
		tr := &trace.Trace{Jobs: []trace.Job{{Spec: sched.JobSpec{Name: "a", GPUs: sched.Rigid(2), Model: "bert"},
			Duration: time.Minute}}}
		return Request{Trace: tr, Cluster: mustLoad(t, "2x8"), System: "tiresias-las", Preset: "muri",
			Settings: map[string]string{}}
	}
	for _, c := range []struct {
		change func(*Request)
		want   string
	}{
		{func(s *Request) {}, ""},
		{func(s *Request) { s.Trace.Jobs[0].Spec.Model = "resnet50" },
			`job a: model "resnet50", want one that is profiled, such as vgg16`},
		{func(s *Request) { s.Trace.Jobs[0].Spec.GPUs = sched.Rigid(3) },
			"job a: 3 GPUs, want one of the widths profiled, [1 2 4 8 16 32]"},
		{func(s *Request) { s.Round = time.Minute }, "the released simulator has no rounds"},
		{func(s *Request) { s.Settings["restart_overhead"] = "62" },
			"restart_overhead=62, want 0: the released simulator knows nothing of it"},
		{func(s *Request) { s.Settings["locality_penalty"] = "2" },
			"locality_penalty=2, want 1: in the released simulator placement changes no speed"},
		{func(s *Request) { s.Settings["promote_knob"] = "8" },
			"promote_knob=8, want none: the released simulator never promotes"},
		{func(s *Request) { s.Settings["thresholds"] = "100" },
			"thresholds [100], want [3250 7200]: the released simulator has no others"},
		{func(s *Request) { s.Settings["placement"] = "skew" }, `placement="skew", want count`},
		{func(s *Request) { s.System = "srtf"; s.Settings["placement"] = "count" }, `placement="count", want yarn`},
		{func(s *Request) { s.Scores = alikeScores(16) },
			"PM scores were given: the released simulator's GPUs do not differ"},
		{func(s *Request) { s.Inject = []sched.Event{{}} }, "the released simulator takes no events from outside"},
		{func(s *Request) { s.Cluster.Nodes[1].GPUs = 4 },
			"node node1 has 4 GPUs of type 0, want all nodes alike: the released simulator knows no others"},
	} {
		s := good()
		c.change(&s)
		err := s.Check()
		if c.want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "preset: muri: ") {
			t.Errorf("error %v, want preset: muri: ... %s", err, c.want)
		}
	}
}

// muriExpected returns what is published, by trace, policy and metric.
func muriExpected(t *testing.T, path string) map[[3]string]float64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	all := map[[3]string]float64{}
	for _, row := range rows[1:] {
		if x, err := strconv.ParseFloat(row[4], 64); err == nil && strings.HasPrefix(row[0], "muri/trace") {
			all[[3]string{row[0], row[2], row[3]}] = x
		}
	}
	return all
}

// readMuri reads a trace of Muri, whose times are milliseconds, with all jobs submitted at 0 if atOnce.
func readMuri(t *testing.T, path string, atOnce bool) *trace.Trace {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	number := func(row []string, column string) int {
		n, err := strconv.Atoi(row[slices.Index(rows[0], column)])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	tr := &trace.Trace{Path: path, Format: "muri"}
	for _, row := range rows[1:] {
		j := trace.Job{Duration: sched.Seconds(float64(number(row, "duration")) / 1000)}
		j.Spec = sched.JobSpec{Name: row[0], GPUs: sched.Rigid(number(row, "num_gpu")),
			Model: row[slices.Index(rows[0], "model_name")]}
		if !atOnce {
			j.Spec.Submit = sched.Time(sched.Seconds(float64(number(row, "submit_time")) / 1000))
		}
		tr.Jobs = append(tr.Jobs, j)
	}
	return tr
}
