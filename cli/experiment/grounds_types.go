package experiment

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// siaCluster has three types of GPU, of Sia's set-up: 64 GPUs.
const siaCluster = "6x4:T4+3x8:RTX+2x8:A100"

// siaKinds are the suffixes of Sia's tables of placements, by type of GPU.
var siaKinds = map[string]string{"T4": "aws", "RTX": "rtx", "A100": "dgx-ext"}

// siaKnown is the type whose speeds stand for all where one table is all that is known: its nodes have the most GPUs,
// and its memory holds every batch.
const siaKnown = "A100"

// siaGround is Sia's: jobs that widen and narrow on GPUs of types that differ. No system is given speeds by type; jobs
// go as fast as was measured on the type that they have.
func siaGround(data string) (rows []groundRow) {
	home := append([]contender{palUnder("tiresias-las", "on")}, elasticHome...)
	for _, set := range []struct {
		name string
		half int // workloads of a half
		best string
	}{{"philly", 4, "pollux"}, {"newtrace", 5, "pollux"}, {"saturn", 5, "pollux"}} {
		rows = append(rows, groundRow{Name: "Sia's " + set.name + ", 24 T4, 24 RTX, 16 A100", Home: home,
			Best: set.best, Bar: .10,
			Worlds: func(deciding bool, n int) ([]world, error) {
				path, err := inData(data, "pollux")
				if err != nil {
					return nil, err
				}
				if n <= 0 || n > set.half {
					n = set.half
				}
				return siaWorlds(path, set.name, 1+set.half*half(deciding), n)
			}})
	}
	return rows
}

// siaWorlds are n workloads of a set, from number first on.
func siaWorlds(path, set string, first, n int) (list []world, err error) {
	byType, err := siaApps(path)
	if err != nil {
		return nil, err
	}
	for i := first; i < first+n; i++ {
		t, bad := trace.Read(filepath.Join(path, fmt.Sprintf("sia/workloads/%s/workload-%d.csv", set, i)),
			trace.Options{})
		if bad != nil {
			return nil, bad
		}
		x, bad := worldOf(fmt.Sprint("workload ", i), t, siaCluster, common())
		if bad != nil {
			return nil, bad
		}
		x.Request.Apps, x.Request.Recorded.Apps = byType[siaKnown], byType
		x.Request.Scores = system.EqualScores(x.Request.Cluster.GPUs())
		list = append(list, x)
	}
	return list, nil
}

// siaApps returns how fast Sia's applications go by type of GPU, with what a batch is worth as Pollux measured it.
func siaApps(path string) (map[string]map[string]speedup.App, error) {
	steps, worth := os.DirFS(filepath.Join(path, "sia/traces")), os.DirFS(filepath.Join(path, "osdi21/traces"))
	byType := make(map[string]map[string]speedup.App)
	for gpu, kind := range siaKinds {
		byType[gpu] = make(map[string]speedup.App)
		for _, name := range []string{"bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"} {
			times, err := speedup.ReadSteps(steps, name, kind)
			if err != nil {
				return nil, err
			}
			gains, err := speedup.ReadValidation(worth, name)
			if err != nil {
				return nil, err
			}
			byType[gpu][name] = speedup.NewProfile(name, times, gains)
		}
	}
	return byType, nil
}
