package simulate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

func gpusNamed(n int) (list []variability.GPU) {
	for g := range n {
		list = append(list, variability.GPU{Name: fmt.Sprint("g", g)})
	}
	return list
}

const penaltyTable = "model_or_class,gpus_min,level,penalty\n*,1,rack,1.5\n*,1,across,3\n" +
	"resnet50,4,rack,1.2\nresnet50,4,across,2\nB,1,across,1\n"

func readPenalties(t *testing.T, text string) *variability.Locality {
	t.Helper()
	l, err := variability.ReadLocality(strings.NewReader(text), "f.csv")
	if err != nil {
		t.Fatal(err)
	}
	return &l
}

// racked is four nodes of two GPUs, two in each of two racks, and one of which no rack is known.
func racked(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Parse([]byte("nodes:\n  - {gpus: 2, count: 4, racks: 2}\n  - {gpus: 2, count: 1, name: lone}\n"),
		"c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// viewOf shows the nodes of a cluster.
func viewOf(c *cluster.Cluster) *sched.View {
	v := &sched.View{}
	for n := range c.Nodes {
		v.Nodes = append(v.Nodes, sched.Node{Spec: c.Nodes[n], First: sched.GPUID(len(v.GPUs))})
		for range c.Nodes[n].GPUs {
			v.GPUs = append(v.GPUs, sched.GPU{Node: sched.NodeID(n)})
		}
	}
	return v
}

// truthOf returns the world of a simulation under settings.
func truthOf(s *Request, words ...string) *truth {
	return s.truth(key.NewSettings(set(words...)).Bind(RuntimeKeys, s.Scores != nil, s.Files))
}

// Ensure that a gang is as slow as its slowest GPU times what its distance costs by model or class, GPUs and level.
func TestSlowdown(t *testing.T) {
	pm := []float64{1, 1, 1, 1.25, 1, 1, 1, 1, 1, 1}
	scores := &variability.Scores{Classes: []string{"A", "B"}, PM: [][]float64{pm, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1.5}}}
	w := truthOf(&Request{Cluster: racked(t), Scores: scores,
		Files: system.Locality.Holds(readPenalties(t, penaltyTable))})
	for _, c := range []struct {
		model, class string
		gpus         []sched.GPUID
		want         float64
	}{
		{"x", "A", []sched.GPUID{2}, 1},
		{"x", "A", []sched.GPUID{2, 3}, 1.25},
		{"x", "A", []sched.GPUID{0, 2}, 1.5},
		{"x", "A", []sched.GPUID{0, 3}, 1.875},
		{"x", "A", []sched.GPUID{0, 1, 4}, 3},
		{"x", "A", []sched.GPUID{6, 8}, 3}, // no one knows where the lone node is
		{"x", "A", []sched.GPUID{8, 9}, 1},
		{"resnet50", "A", []sched.GPUID{0, 2}, 1.5},
		{"resnet50", "A", []sched.GPUID{0, 1, 2, 3}, 1.5}, // 1.25 * 1.2
		{"resnet50", "A", []sched.GPUID{0, 1, 4, 5}, 2},
		{"x", "B", []sched.GPUID{0, 9}, 1.5},
	} {
		job := &trace.Job{Spec: sched.JobSpec{Model: c.model, Class: c.class}}
		if got := w.slowdown(viewOf(racked(t)), job, c.gpus); got != c.want {
			t.Errorf("%s, class %s on %v: %v, want %v", c.model, c.class, c.gpus, got, c.want)
		}
	}
}

// Ensure that without a table distance costs locality_penalty, whatever the racks, which is 1 where GPUs do not differ;
// and that it fills what a table leaves open.
func TestLocalityPenalty(t *testing.T) {
	alike := &variability.Scores{Classes: []string{"A"}, PM: [][]float64{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}}
	job, near := &trace.Job{}, []sched.GPUID{0, 2}
	for _, c := range []struct {
		sim  Request
		set  []string
		want float64
	}{
		{Request{}, nil, 1},
		{Request{}, []string{"locality_penalty=2"}, 2},
		{Request{Scores: alike}, nil, 1.7},
		{Request{Files: system.Locality.Holds(readPenalties(t, penaltyTable))}, nil, 1.5},
		{Request{Scores: alike, Files: system.Locality.Holds(readPenalties(t,
			"model_or_class,gpus_min,level,penalty\nx,1,across,4\n"))}, []string{"locality_penalty=2"}, 2},
	} {
		c.sim.Cluster = racked(t)
		if got := truthOf(&c.sim, c.set...).slowdown(viewOf(c.sim.Cluster), job, near); got != c.want {
			t.Errorf("%v: %v, want %v", c.set, got, c.want)
		}
	}
}

// Ensure that PAL keeps a gang in a rack where the table says that this is nearer, and that the world charges by the
// same table: PM-First takes the fastest GPUs, far apart.
func TestRacksAreHeeded(t *testing.T) {
	pm := []float64{.75, 1, 1, 1, .75, 1, 1, 1, .75, 1}
	tr := traceOf(row{0, 3, 1000})
	for sys, want := range map[string]time.Duration{"pal": 1500 * time.Second, "pm-first": 2250 * time.Second,
		"packed": 1500 * time.Second} {
		got := simulate(t, &Request{Trace: tr, Cluster: racked(t), System: sys, Settings: set("locality=f"),
			Files:  system.Locality.Holds(readPenalties(t, penaltyTable)),
			Scores: &variability.Scores{Name: "s", GPUs: gpusNamed(10), Classes: []string{"A"}, PM: [][]float64{pm}}})
		if got.PerJob[0].Run != want {
			t.Errorf("%s: the gang ran %v, want %v", sys, got.PerJob[0].Run, want)
		}
	}
}

// Ensure that a class map changes both what is true and what PAL knows, and that it beats what jobs say.
func TestClassMapIsHeeded(t *testing.T) {
	scores := &variability.Scores{Name: "s", GPUs: gpusNamed(3), Classes: []string{"A", "B"},
		PM: [][]float64{{1, 2, 1}, {2, 1, 2}}}
	m, err := variability.ReadClassMap(strings.NewReader("model,class\nnet,B\n"), "f.csv", scores.Classes)
	if err != nil {
		t.Fatal(err)
	}
	tr := traceOf(row{0, 1, 1000})
	tr.Jobs[0].Spec.Model, tr.Jobs[0].Spec.Class = "net", "A"
	for _, c := range []struct {
		m      *variability.ClassMap
		system string
		want   time.Duration
	}{{nil, "pal", 1000}, {nil, "packed", 1000}, {m, "pal", 1000}, {m, "packed", 2000}} {
		settings, files := set(), key.Contents(nil)
		if c.m != nil {
			settings["classes"], files = "f.csv", system.Classes.Holds(c.m)
		}
		out := simulate(t, &Request{Trace: tr, Cluster: mustLoad(t, "1x3"), System: c.system, Settings: settings,
			Scores: scores, Files: files})
		if got := out.PerJob[0].Run; got != c.want*time.Second {
			t.Errorf("map %v, %s: ran %v, want %v s", c.m != nil, c.system, got, c.want)
		}
	}
}

// Ensure that keys that name files are refused where their contents are not given, and files that contradict each
// other.
func TestFilesAreChecked(t *testing.T) {
	one := []float64{1, 1}
	s := &variability.Scores{Name: "a.csv", GPUs: gpusNamed(2), Classes: []string{"A"}, PM: [][]float64{one}}
	turned := &variability.Scores{Name: "b.csv", GPUs: []variability.GPU{{Name: "g1"}, {Name: "g0"}},
		Classes: []string{"A"}, PM: [][]float64{one}}
	for _, c := range []struct {
		sim  Request
		want string
	}{
		{Request{Settings: set("classes=x.csv")}, `system: classes="x.csv", want stated, observed, or a file that ` +
			`was read`},
		{Request{Settings: set("classes=observed"), Files: system.Classes.Holds(&variability.ClassMap{})},
			`system: classes="observed", want stated, observed, or a file that was read`},
		{Request{Settings: set("locality=x.csv")}, `system: locality="x.csv", want a file that was read`},
		{Request{Known: turned}, `variability: b.csv: GPU "g1" is row 1, in a.csv row 2, want GPUs in the same order`},
	} {
		c.sim.Trace, c.sim.Cluster, c.sim.System, c.sim.Scores = traceOf(row{0, 1, 1}), mustLoad(t, "1x2"), "pal", s
		if err := c.sim.Check(); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
