package experiment

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// scaled plays jobs of worlds under pollux-autoscale, by minutes, and returns how many nodes were there when, in
// minutes.
func scaled(t *testing.T, on string, jobs []asked, apps map[string]speedup.App,
	settings map[string]string) (string, *simulate.Outcome) {
	t.Helper()
	c, err := cluster.Load(on)
	if err != nil {
		t.Fatal(err)
	}
	tr := &trace.Trace{Format: "generated", Profiled: true}
	for i, j := range jobs {
		tr.Jobs = append(tr.Jobs, trace.Job{Spec: sched.JobSpec{Name: fmt.Sprint(i), Model: j.app,
			Submit: sched.Time(sched.Seconds(j.submit)), GPUs: j.gpus}})
	}
	n := &nodeCount{}
	s := &simulate.Request{Trace: tr, Cluster: c, System: "pollux-autoscale", Apps: apps, Sinks: []eventlog.Sink{n},
		Settings: plus(settings, map[string]string{"curves": "oracle", "restart_overhead": "0"})}
	out, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(n.said, " "), out
}

// nodeCount notes how many nodes are there after each change, and refuses refusals.
type nodeCount struct {
	nodes int
	said  []string
}

// Log counts.
func (n *nodeCount) Log(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.NodeJoined:
		n.nodes++
	case sched.NodeLeft:
		n.nodes--
	case sched.Refused:
		panic(fmt.Sprintf("%v: refused: %v", e.Time, e.Text))
	default:
		return
	}
	said := fmt.Sprintf("%v:", e.Time.Seconds()/60)
	n.said = slices.DeleteFunc(n.said, func(s string) bool { return strings.HasPrefix(s, said) })
	n.said = append(n.said, said+fmt.Sprint(n.nodes))
}

// Ensure that nodes follow utility. By Amdahl's law with a share of 0.9, 8 GPUs have 0.588 of utility: two nodes of 4
// are nearest to 0.5, and 4 have 0.77, within the band of 0.9. A job is never wider than twice what it was: with 4 GPUs
// seen, five nodes, of which it would leave 12 GPUs idle, are nearest to 0.25, later eight.
func TestAutoscaleFollowsUtility(t *testing.T) {
	apps := map[string]speedup.App{"amdahl": simulate.AmdahlApp(.9, 8)}
	jobs := []asked{{"amdahl", 60, sched.Range{Min: 1, Want: 1, Max: 64}}}
	for utility, want := range map[string]string{
		"0.5":  "1:1 16:2",
		"0.9":  "1:1",
		"0.25": "1:1 16:5 31:8",
	} {
		got, out := scaled(t, "16x4", jobs, apps, map[string]string{"utility": utility})
		want += fmt.Sprintf(" %d:0", int(out.PerJob[0].Finish.Seconds()/60)+1)
		if got != want || out.Finished != 1 {
			t.Errorf("utility %s: nodes %s, want %s", utility, got, want)
		}
	}
}

// Ensure that nodes go that are no longer worth having although jobs are on them, which are placed on the others, and
// that all go when no job is left: eight jobs of one GPU fill two nodes, and once all but two have ended, one is
// enough.
func TestAutoscaleShrinks(t *testing.T) {
	apps := map[string]speedup.App{"hour": speedup.Stages{{Size: 3600, Law: proportional{}}},
		"day": speedup.Stages{{Size: 24 * 3600, Law: proportional{}}}}
	one := sched.Rigid(1)
	jobs := []asked{{"day", 0, one}}
	for range 6 {
		jobs = append(jobs, asked{"hour", 0, one})
	}
	jobs = append(jobs, asked{"day", 0, one})
	got, out := scaled(t, "4x4", jobs, apps, map[string]string{"utility": "0.9"})
	if want := "0:2 67:1 1440:0"; got != want || out.Migrations != 1 || out.Finished != 8 {
		t.Errorf("nodes %s, %d moves, %d jobs finished, want %s, 1, 8", got, out.Migrations, out.Finished, want)
	}
}

// Ensure that there are nodes enough for the job that needs most at least, at once, whatever utility says, and that one
// that could never run has nothing rented. The one of 16 GPUs has them all until it ends.
func TestAutoscaleMinima(t *testing.T) {
	apps := map[string]speedup.App{"hour": speedup.Stages{{Size: 3600, Law: proportional{}}},
		"amdahl": simulate.AmdahlApp(.1, 1)}
	jobs := []asked{{"hour", 0, sched.Rigid(1)}, {"amdahl", 600, sched.Rigid(16)}, {"hour", 4200, sched.Rigid(17)}}
	if got, out := scaled(t, "4x4", jobs, apps, nil); got != "0:1 10:4 65:1 115:0" || out.Finished != 2 {
		t.Errorf("nodes %s, %d jobs finished, want 0:1 10:4 65:1 115:0, 2", got, out.Finished)
	}
}

// Ensure that nodes that are owned stay, and that what is not worth having of them stays idle.
func TestAutoscaleOwned(t *testing.T) {
	c, err := cluster.Parse([]byte("nodes: [{gpus: 4, count: 16}]\npools: [{name: more, gpus: 4, max: 4}]"), "c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apps := map[string]speedup.App{"amdahl": simulate.AmdahlApp(.9, 8)}
	tr := &trace.Trace{Format: "generated", Profiled: true,
		Jobs: []trace.Job{{Spec: sched.JobSpec{Name: "0", Model: "amdahl",
			GPUs: sched.Range{Min: 1, Want: 1, Max: 64}}}}}
	widest, n := 0, &nodeCount{}
	s := &simulate.Request{Trace: tr, Cluster: c, System: "pollux-autoscale", Apps: apps,
		Settings: map[string]string{"curves": "oracle", "restart_overhead": "0"},
		Sinks: []eventlog.Sink{n, eventFunc(func(_ *sched.View, e *sched.Event) {
			widest = max(widest, len(e.GPUs))
		})}}
	if _, err = s.Run(t.Context()); err != nil || widest != 8 || n.nodes != 16 {
		t.Errorf("widest %d, %d nodes at the end, %v; want 8 and 16", widest, n.nodes, err)
	}
}
