package speedup

import (
	"math"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// FuzzProfile ensures that whatever is read as a profile answers with numbers.
func FuzzProfile(f *testing.F) {
	fsys := toy()
	text := func(name string) string { return string(fsys["toy/"+name].Data) }
	f.Add(text("placements.csv"), text("scalability.csv"), text("validation-8.csv"), text("validation-32.csv"))
	f.Add(placementsHead+"9,1,1,0\n", scalabilityHead, validationHead+"1e-300,1,1,0,1e-320\n", validationHead+
		"1e300,1,1,1e100,1\n2e300,1,1,0,1\n")
	f.Fuzz(func(t *testing.T, placements, scalability, small, large string) {
		list, err := ReadProfiles(files(map[string]string{"toy/placements.csv": placements,
			"toy/scalability.csv":  scalability,
			"toy/validation-8.csv": small, "toy/validation-32.csv": large}), "")
		if err != nil {
			checkError(t, err)
			return
		}
		checkApp(t, list[0])
	})
}

func FuzzThroughputs(f *testing.F) {
	f.Add("global_batch_size,4,1,2\n64,3,1,\n128,2.5,0,nan\n32,3.5,1.5,2\n")
	f.Add("global_batch_size,1\n1073741824,1e9\n")
	f.Fuzz(func(t *testing.T, text string) {
		x, err := ReadThroughputs(strings.NewReader(text), "x.csv")
		if err != nil {
			checkError(t, err)
			return
		}
		x.Between = Linear
		checkApp(t, x)
	})
}

func FuzzTargetRuns(f *testing.F) {
	f.Add("dataset,network,batch_size,optimizer,learning_rate,run,target_metric,target_epoch\nd,n,8,o,1,1,.5,3\n" +
		"d,n,16,o,1,1,.5,nan\n")
	f.Fuzz(func(t *testing.T, text string) {
		runs, err := ReadTargetRuns(strings.NewReader(text), "x.csv")
		if err != nil {
			checkError(t, err)
			return
		}
		for _, r := range runs {
			e, err := EpochsTo(runs, r.Dataset, r.Network, r.Target, 100)
			if err != nil {
				checkError(t, err)
				continue
			}
			for _, batch := range e.Batches {
				if g := e.Gain(0, batch); !(g >= 0) || math.IsInf(g, 0) || g > float64(batch) {
					t.Fatalf("gain %v with batch %d", g, batch)
				}
			}
		}
	})
}

func checkError(t *testing.T, err error) {
	t.Helper()
	if text := err.Error(); !strings.HasPrefix(text, "speedup: ") || strings.Contains(text, "\n") {
		t.Errorf("error %q, want one line that starts with speedup:", text)
	}
}

// checkApp checks what is said of every App: sizes > 0, finite speeds >= 0, and that Best is as fast as Speed says.
func checkApp(t *testing.T, app App) {
	t.Helper()
	for phase, size := range app.Sizes() {
		if !(size > 0) || math.IsInf(size, 0) {
			t.Fatalf("phase %d of size %v", phase, size)
		}
		for gpus := 1; gpus <= 20; gpus++ {
			for _, nodes := range []int{1, (gpus + 3) / 4, gpus} {
				w, speed := app.Best(phase, gpus, nodes, sched.BatchRange{})
				if !(speed >= 0) || math.IsInf(speed, 0) || (w == Way{}) != (speed == 0) {
					t.Fatalf("%d GPUs on %d nodes: %+v with speed %v", gpus, nodes, w, speed)
				}
				if speed > 0 && app.Speed(phase, w) != speed {
					t.Fatalf("%+v: speed %v, but %v by Best", w, app.Speed(phase, w), speed)
				}
				if again := app.Speed(phase, Way{GPUs: gpus, Nodes: nodes}); again != speed {
					t.Fatalf("%d GPUs on %d nodes: speed %v without a batch size, %v by Best", gpus, nodes, again,
						speed)
				}
			}
		}
	}
}
