package experiment

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// Reference: the simulator of Gavel on its physical_cluster/max_min_fairness.trace, 36 V100s, seed 0. Ensure that the
// preset gives its average JCTs.
func TestPresetGavel(t *testing.T) {
	dir := filepath.Join(shareddata.DataDir(t), "colocation/gavel")
	sharing, err := readSharingFile(filepath.Join(dir, "simulation_throughputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Load("9x4")
	if err != nil {
		t.Fatal(err)
	}
	steps, err := sharing.Steps(c)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Read(filepath.Join(dir, "max_min_fairness.trace"), trace.Options{Steps: steps})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		system string
		keys   map[string]string
		want   string
	}{{"fifo", nil, "12464.078"}, {"fifo", map[string]string{"perf": "yes"}, "12722.813"},
		{"fifo-packed", nil, "12652.912"}, {"gandiva", nil, "11728.987"}} {
		out, err := (&simulate.Request{Trace: tr, Cluster: c, System: x.system, Settings: x.keys, Preset: "gavel",
			Sharing: sharing}).Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%.3f", out.AvgJCT); got != x.want {
			t.Errorf("%s %v: %s s, want %s", x.system, x.keys, got, x.want)
		}
	}
}

// Ensure that the experiment runs, that sleep saves fifo energy where there is room, and that sharing saves more.
func TestEaCOExperiment(t *testing.T) {
	p := &eacoPart{Nodes: 12, Seeds: 1, Rows: eacoRows(standInCaps())}
	if err := p.run(context.Background(), standInTables(), poissonArrivals(40)); err != nil {
		t.Fatal(err)
	}
	awake, asleep, eaco := p.Rows[0].KWh, p.Rows[4].KWh, p.Rows[7].KWh
	if !(eaco < asleep && asleep < awake) || p.Rows[7].Unfinished > 0 {
		t.Errorf("%v kWh by eaco, %v by fifo, %v with idle nodes awake, want each less than the next", eaco, asleep,
			awake)
	}
	var b strings.Builder
	if p.print(&b); !strings.Contains(b.String(), "eaco asleep") {
		t.Error(b.String())
	}
}

// Ensure that what companies add to run time is all that eaco adds to it, and that the shares of their time are all of
// it.
func TestEaCOCompanies(t *testing.T) {
	p := &eacoPart{Nodes: 12, Seeds: 2, Rows: eacoRows(standInCaps())}
	if err := p.run(context.Background(), standInTables(), poissonArrivals(60)); err != nil {
		t.Fatal(err)
	}
	r, share, excess := &p.Rows[7], 0.0, 0.0
	for _, c := range r.Companies {
		share, excess = share+c.Share, excess+c.Excess
	}
	if longer := r.Run/p.Rows[4].Run - 1; r.Undos > 0 || math.Abs(share-1) > 1e-9 || math.Abs(excess-longer) > 1e-6 ||
		longer < 0.01 {
		t.Errorf("%v of the time, %v longer, %v undos; want 1, %v, 0", share, excess, r.Undos, longer)
	}
}

// Ensure that power caps compose with eaco: it takes none for the fault of those who share, so that as many share as
// without, and jobs with deadlines keep them under a cap that is one for all; each takes at most the product of both
// limits as long.
func TestCapsCompose(t *testing.T) {
	c, err := eacoCluster(28)
	if err != nil {
		t.Fatal(err)
	}
	curve := standInCaps().Of("ResNet-50")
	caps := simulate.CapCurves{"alexnet": curve, "resnet18": curve, "resnet50": curve, "vgg16": curve}
	run := func(cap string, deadline float64) *simulate.Outcome {
		tr := eacoTrace(1, poissonArrivals(200)(1))
		for i := range tr.Jobs {
			if j := &tr.Jobs[i]; deadline > 0 {
				j.Spec.Deadline = j.Spec.Submit.Add(time.Duration(deadline * float64(j.Duration)))
			}
		}
		s := simulate.Request{Trace: tr, Cluster: c, System: "eaco", Sharing: standInTables(), Caps: caps,
			Settings: map[string]string{"power_cap": cap}}
		out, err := s.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	free, capped := run("off", 0), run("1.2", 0)
	if capped.Undos != 0 || capped.AvgRun > 1.2*free.AvgRun || capped.AvgRun < 1.15*free.AvgRun {
		t.Errorf("%d undone, run %v s, %v s without caps; want none, and 1.18 times as long", capped.Undos,
			capped.AvgRun, free.AvgRun)
	}
	for _, j := range capped.PerJob {
		if j.Run > time.Duration(1.2*1.1*36.13*float64(time.Hour)) {
			t.Errorf("a job ran for %v, want at most 1.2 x 1.1 times as long as alone", j.Run)
		}
	}
	if tight := run("150W", 1.4); tight.DeadlineMisses != 0 || tight.AvgActiveNodes > 0.8*28 {
		t.Errorf("%d deadlines missed on %v nodes, want none on fewer than jobs alone need", tight.DeadlineMisses,
			tight.AvgActiveNodes)
	}
	if plain, byEnergy := run("off", 1.1), run("1.2", 1.1); byEnergy.DeadlineMisses != 0 ||
		byEnergy.EnergyKWh != plain.EnergyKWh {
		t.Errorf("%d deadlines missed, %v kWh, %v without caps; want none, and no caps for jobs with deadlines",
			byEnergy.DeadlineMisses, byEnergy.EnergyKWh, plain.EnergyKWh)
	}
}

// Ensure that noise on slow-downs follows from its seed alone, and that a wrong file is one error.
func TestSharingTruth(t *testing.T) {
	tr := eacoTrace(1, poissonArrivals(30)(1))
	c, err := eacoCluster(4)
	if err != nil {
		t.Fatal(err)
	}
	run := func(seed string) float64 {
		s := simulate.Request{Trace: tr, Cluster: c, System: "eaco", Sharing: standInTables(),
			Settings: map[string]string{"interference_noise": "0.1", "interference_seed": seed}}
		out, err := s.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return out.AvgJCT
	}
	if a, b := run("1"), run("1"); a != b || a == run("2") {
		t.Errorf("%v and %v with one seed, want them equal, and others with another", a, b)
	}
	for _, text := range []string{"", "{", "set\n", "{}x"} {
		if _, err := simulate.ReadSharing(strings.NewReader(text), "f"); err == nil ||
			!strings.Contains(err.Error(), "f") {
			t.Errorf("%q: %v, want an error that names the file", text, err)
		}
	}
	if _, err := readSharingFile(filepath.Join(t.TempDir(), "x")); !os.IsNotExist(err) {
		t.Error(err)
	}
}
