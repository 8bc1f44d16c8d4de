package simulate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// Ensure that the oracle and the world say the same of spells, also where one follows another at once, by playing the
// changes up to random moments.
func TestSpellsTellTheSame(t *testing.T) {
	c, err := cluster.Load("1x4")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		rows := "gpu,from_s,to_s,factor\n"
		for g := range 4 {
			at := 0
			for range 1 + r.IntN(4) {
				from := at + r.IntN(3)
				at = from + 1 + r.IntN(5)
				rows += fmt.Sprintf("%d,%d,%d,%g\n", g, from, at, []float64{1, 1.5, 2.8}[r.IntN(3)])
			}
		}
		spells, err := variability.ReadSpells(strings.NewReader(rows), "slow.csv", 4)
		if err != nil {
			t.Fatal(err)
		}
		truth, changes := (&Request{Cluster: c}).slow(spells), disturbances(spells)
		for now := sched.Time(0); now < 40e9; now += 5e8 {
			played := [4]float64{1, 1, 1, 1}
			for _, x := range changes {
				if x.At <= now {
					played[x.GPUs[0]] = x.Factor
				}
			}
			for g, want := range played {
				if f, until := truth(sched.GPUID(g), now); f != want || until <= now {
					t.Fatalf("GPU %d at %v: %v until %v, the world has %v\n%s", g, now, f, until, want, rows)
				}
			}
		}
	}
}

// Ensure that the keys of slow GPUs and of reports make sense together.
func TestSlowGPUsRefuses(t *testing.T) {
	tr := &trace.Trace{Jobs: []trace.Job{{Spec: sched.JobSpec{Name: "a", GPUs: sched.Rigid(1)}, Duration: 1e9}}}
	c, err := cluster.Load("1x4")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ system, preset, set, want string }{
		{"packed", "", "stragglers=watch", "system: stragglers=watch learns from reports, and there are none; set " +
			"report_interval, such as 60"},
		{"packed", "", "report_noise=0.1", "system: report_noise is that of reports, and there are none; set " +
			"report_interval, such as 60"},
		{"packed", "", "slow_gpus=f.csv", `system: slow_gpus="f.csv", want a file that was read`},
		{"packed", "blox-pal", "report_interval=60",
			"preset: report_interval=60, want none: the released simulator knows nothing of it"},
		{"packed", "blox-pal", "stragglers=watch",
			"preset: blox-pal: stragglers=watch, want none: the released simulator knows nothing of it"},
	} {
		key, value, _ := strings.Cut(x.set, "=")
		s := Request{Trace: tr, Cluster: c, System: x.system, Preset: x.preset, Settings: map[string]string{key: value}}
		if x.preset != "" {
			s.Scores = alikeScores(4)
		}
		if err := s.Check(); err == nil || err.Error() != x.want {
			t.Errorf("%s: %v\nwant %s", x.set, err, x.want)
		}
	}
}
