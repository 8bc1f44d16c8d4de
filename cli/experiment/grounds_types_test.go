package experiment

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that the halves of the sets of Sia have no workload in common, that each of their jobs has its application on
// every type, and that those of the type that is known run there.
func TestSiaWorlds(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	data := shareddata.DataDir(t)
	for _, deciding := range []bool{false, true} {
		for _, row := range siaGround(data) {
			worlds, err := row.Worlds(deciding, 1)
			if err != nil {
				t.Fatal(err)
			}
			for i := range worlds {
				x := &worlds[i]
				if at := row.Name + x.Name; seen[at] || len(worlds) != 1 {
					t.Errorf("%s stands twice, or there are %d worlds", at, len(worlds))
				} else {
					seen[at] = true
				}
				for _, j := range x.Request.Trace.Jobs {
					for _, gpu := range x.Request.Cluster.Types {
						if x.Request.Recorded.Apps[gpu][j.Spec.Model] == nil {
							t.Fatalf("%s: no %s on %s", x.Name, j.Spec.Model, gpu)
						}
					}
				}
			}
		}
	}
	apps, err := siaApps(filepath.Join(data, "pollux"))
	if err != nil {
		t.Fatal(err)
	}
	for name, app := range apps[siaKnown] {
		if _, speed := app.Best(0, 8, 1, sched.BatchRange{}); !(speed > 0) {
			t.Errorf("%s: speed %v on 8 GPUs", name, speed)
		}
	}
}

// Ensure that the neutral ground offers the load that it says, half of its jobs rigid, and nodes to rent.
func TestNeutralWorlds(t *testing.T) {
	t.Parallel()
	for _, row := range neutralGround(shareddata.DataDir(t)) {
		worlds, err := row.Worlds(false, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range worlds {
			r := &worlds[i].Request
			rigid, n := 0, len(r.Trace.Jobs)
			for k := range r.Trace.Jobs {
				if g := r.Trace.Jobs[k].Spec.GPUs; g.Min == g.Max {
					rigid++
				}
			}
			span := r.Trace.Jobs[n-1].Spec.Submit.Seconds() / 3600
			load := float64(n) * meanHours / (float64(r.Cluster.GPUs()) * span)
			if n != neutralJobs || rigid != n/2 || math.Abs(load/neutralLoad-1) > .15 || len(r.Cluster.Pools) != 1 {
				t.Errorf("%s, %s: %d jobs, %d rigid, load %v, %d pools", row.Name, worlds[i].Name, n, rigid, load,
					len(r.Cluster.Pools))
			}
		}
	}
}
