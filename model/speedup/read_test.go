package speedup

import (
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/trainyard/trainyard/sched"
)

const (
	placementsHead  = "placement,local_bsz,step_time,sync_time\n"
	scalabilityHead = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n"
	validationHead  = "progress,iteration,metric,grad_sqr,grad_var\n"
)

// toy is a small application: nodes of 2 GPUs, micro-batches of 4 to 8 samples, batch sizes 8 to 32, two epochs.
func toy() fstest.MapFS {
	return files(map[string]string{
		"toy/placements.csv": placementsHead + "1,4,0.5,0\n1,8,0.9,0\n2,4,0.6,0.1\n2,8,1,0.1\n" +
			"11,4,0.8,0.3\n11,8,1.2,0.3\n12,4,1,0.5\n12,8,1.4,0.5\n22,4,1.2,0.7\n22,8,1.6,0.7\n",
		"toy/scalability.csv":   scalabilityHead + "4,4,4,1.4,0.9\n4,4,8,1.8,0.9\n4,8,4,1.6,1.1\n4,8,8,2,1.1\n",
		"toy/validation-8.csv":  validationHead + "100,100,0.1,1,1\n250,250,0.2,1,3\n",
		"toy/validation-32.csv": validationHead + "120,40,0.1,1,1\n240,80,0.2,1,3\n",
	})
}

func files(texts map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range texts {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func toyProfile(t testing.TB) *Profile {
	t.Helper()
	list, err := ReadProfiles(toy(), "")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	return list[0]
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-12*math.Max(1, math.Abs(want)) }

func TestSteps(t *testing.T) {
	s := toyProfile(t).Steps
	for _, c := range []struct {
		placement  string
		perGPU     int
		step, sync float64 // 0 = unknown
	}{
		{"1", 4, .5, 0}, {"1", 6, .7, 0}, {"1", 3, 0, 0}, {"1", 9, 0, 0},
		{"12", 8, 1.4, .5}, {"21", 8, 1.4, .5}, {"201", 8, 1.4, .5},
		{"111", 4, 1.1, .6},                 // on 3 nodes: half way from 2 GPUs on 2 nodes to 4 on 4
		{"222", 4, 1.4, .9},                 // from 4 on 2 to 8 on 4
		{"112", 8, 1.6, .7},                 // 4 on 3: from 8/3 on 2 to 16/3 on 4
		{"1122", 8, 1.9, 1},                 // 6 on 4: between 4 and 8
		{"22222", 0, 0, 0},                  // no samples
		{"22222", 4, 0, 0},                  // 10 GPUs on the 4 nodes as which 5 count
		{"11111", 4, 1.45, .95},             // 5 on 4
		{"3", 4, 1, .5}, {"14", 4, 1.3, .8}, // more on a node than was measured: 2 and 1; 1, 2 and 2
	} {
		var placement []int
		for _, d := range c.placement {
			placement = append(placement, int(d-'0'))
		}
		step, sync, ok := s.Placed(placement, c.perGPU)
		if ok != (c.step > 0) || !near(step, c.step) && ok || !near(sync, c.sync) && ok {
			t.Errorf("%s with %d samples: %v, %v, %v, want %v, %v", c.placement, c.perGPU, step, sync, ok, c.step,
				c.sync)
		}
	}
	if _, _, ok := s.Placed(nil, 4); ok {
		t.Error("a step on no GPUs")
	}
	// A curve that ends before others goes on between them, but not by more than its length.
	gap := toy()
	gap["toy/scalability.csv"].Data = []byte(scalabilityHead +
		"4,4,4,1.4,0.9\n4,4,8,1.8,0.9\n4,8,4,1.6,1.1\n4,8,5,1.7,1.2\n")
	list, err := ReadProfiles(gap, "")
	if err != nil {
		t.Fatal(err)
	}
	for perGPU, want := range map[int]float64{4: 1.5, 5: 1.6, 6: 1.7, 8: 1.9} {
		if step, sync, ok := list[0].Steps.Placed([]int{2, 2, 1, 1}, perGPU); !ok || !near(step, want) || sync > step {
			t.Errorf("%d samples: %v, %v, want %v", perGPU, step, ok, want)
		}
	}
	// 3 GPUs packed are 12, on 3 nodes 111; 4 on one node count as 22.
	for _, c := range []struct {
		gpus, nodes int
		step        float64
	}{{3, 2, 1}, {3, 3, 1.1}, {4, 1, 1.2}, {4, 2, 1.2}} {
		if step, _, ok := s.At(c.gpus, c.nodes, 4); !ok || !near(step, c.step) {
			t.Errorf("%d GPUs on %d nodes: %v, %v, want %v", c.gpus, c.nodes, step, ok, c.step)
		}
	}
}

func TestProfile(t *testing.T) {
	p := toyProfile(t)
	if sizes := p.Sizes(); len(sizes) != 2 || sizes[0] != 100 || sizes[1] != 140 {
		t.Errorf("phases of %v, want 100 and 140", sizes)
	}
	v := p.Validation
	if got := v.Updates(1, 14); got != 207.5 {
		t.Errorf("%v updates with batch 14, want a quarter of the way from 250 to 80", got)
	}
	for _, c := range []struct {
		w    Way
		want float64
	}{
		{Way{GPUs: 1, Nodes: 1, Batch: 8}, 1 / .9},
		{Way{GPUs: 1, Nodes: 1, Batch: 12}, Gain(1, 1, 1.5) / (.7 + .7)}, // one GPU probes: twice 6 samples
		{Way{GPUs: 2, Nodes: 1, Batch: 16}, Gain(1, 1, 2) / 1},           // 8 on each
		{Way{GPUs: 2, Nodes: 1, Batch: 32}, Gain(1, 1, 4) / (1 + .9)},    // twice 8 on each
		{Way{GPUs: 2, Nodes: 2, Batch: 15}, Gain(1, 1, 2) / 1.2},         // rounded to 16
		// 6 twice is 36, above the largest: 5 twice
		{Way{GPUs: 3, Nodes: 2, Batch: 32}, Gain(1, 1, 30./8) / (1.1 + .6)},
		{Way{GPUs: 2, Nodes: 1, Batch: 16, Accum: 2}, Gain(1, 1, 2) / (.6 + .5)}, // as asked
		{Way{GPUs: 4, Nodes: 2, Batch: 8}, 0},                                    // 2 on each are too few
		{Way{GPUs: 1, Nodes: 1, Batch: 33}, 0}, {Way{GPUs: 1, Nodes: 1, Batch: 7}, 0}, {Way{Batch: 8}, 0},
		{Way{GPUs: 1, Nodes: 1, Batch: 16, Accum: 1}, 0}, // 16 do not fit
	} {
		if got := p.Speed(0, c.w); !near(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.w, got, c.want)
		}
		if seconds, batch := p.Update(c.w); seconds > 0 && !near(p.Validation.Gain(0, batch)/seconds, c.want) {
			t.Errorf("%+v: %v s for %d samples", c.w, seconds, batch)
		}
	}
	if got := p.SpeedPlaced(0, []int{0, 2, 1}, Way{Batch: 30}); !near(got,
		p.Speed(0, Way{GPUs: 3, Nodes: 2, Batch: 30})) || got == 0 {
		t.Errorf("placed 2,1: %v", got)
	}
	if p.SpeedPlaced(0, []int{0}, Way{Batch: 30}) != 0 || p.SpeedPlaced(0, []int{9}, Way{}) != 0 {
		t.Error("a speed without GPUs, or on too many")
	}
	if got, want := p.SpeedPlaced(0, []int{2}, Way{}), p.Speed(0, Way{GPUs: 2, Nodes: 1}); got != want || got == 0 {
		t.Errorf("placed 2 with the best batch size: %v, want %v", got, want)
	}
}

func TestBadProfiles(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"placements.csv", "", "line 1: empty file, want a header line and rows"},
		{"placements.csv", "placement,local_bsz,step_time\n",
			`line 1: no column "sync_time", want the columns placement, local_bsz, step_time, sync_time`},
		{"placements.csv", "placement,local_bsz,step_time,sync_time,x\n",
			`line 1: unknown column "x", want the columns placement, local_bsz, step_time, sync_time`},
		{"placements.csv", "placement,placement\n", `line 1: column "placement" twice, want it once`},
		{"placements.csv", placementsHead, "line 1: no rows, want at least one placement"},
		{"placements.csv", placementsHead + "10,4,1,0\n",
			`line 2: placement "10", want a digit from 1 to 9 for each node, at most 64`},
		{"placements.csv", placementsHead + "1,0,1,0\n",
			`line 2: local_bsz "0", want a whole number from 1 to 1073741824`},
		{"placements.csv", placementsHead + "1,4.5,1,0\n",
			`line 2: local_bsz "4.5", want a whole number from 1 to 1073741824`},
		{"placements.csv", placementsHead + "1,4,0,0\n", `line 2: step_time "0", want a number >= 1e-09`},
		{"placements.csv", placementsHead + "1,4,nan,0\n", `line 2: step_time "nan", want a number >= 1e-09`},
		{"placements.csv", placementsHead + "1,4,1,-1\n", `line 2: sync_time "-1", want a number >= 0`},
		{"placements.csv", placementsHead + "1,4,1,2\n", "line 2: step of 1 s with 2 s of synchronisation, want at " +
			"most 1e+09 s, synchronisation included"},
		{"placements.csv", placementsHead + "1,4,1e10,2\n", "line 2: step of 1e+10 s with 2 s of synchronisation, " +
			"want at most 1e+09 s, synchronisation included"},
		{"placements.csv", placementsHead + "12,4,1,0\n21,4,1,0\n", "line 3: placement 21 with 4 samples on each GPU " +
			"twice, want it once"},
		{"placements.csv", placementsHead + "1,4,1\n", "line 2: 3 fields, want 4 as in the header"},
		{"placements.csv", placementsHead + "\"1,4,1\n", "line 2: extraneous or missing \" in quoted-field, want " +
			"comma-separated values"},
		{"scalability.csv", scalabilityHead + "4,3,4,1,0\n", "line 2: 3 GPUs on 4 nodes, want at least one on each"},
		{"validation-8.csv", validationHead, "line 1: no rows, want one for each epoch"},
		{"validation-8.csv", validationHead + "5,1,1,1,1\n5,1,1,1,1\n", "line 3: progress 5 behind 5, want it to rise"},
		{"validation-8.csv", validationHead + "5,2,1,1,1\n6,1,1,1,1\n", "line 3: iteration 1 behind 2, want it not " +
			"to fall"},
		{"validation-8.csv", validationHead + "0,1,1,1,1\n", "line 2: progress 0 behind 0, want it to rise"},
		{"validation-8.csv", validationHead + "5,1,1,0,0\n", "line 2: gradient without norm and variance, want one " +
			"of them > 0"},
		{"validation-8.csv", validationHead + "5,1,1,1e200,1\n", "line 2: gradient of norm 1e+200 and variance 1, " +
			"want at most 1e+100"},
		{"validation-8.csv", validationHead + "5,1,1,-1,1\n", `line 2: grad_sqr "-1", want a number >= 0`},
	} {
		fsys := toy()
		fsys["toy/"+c.file].Data = []byte(c.text)
		_, err := ReadProfiles(fsys, "")
		if want := "speedup: toy/" + c.file + ": " + c.want; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestMissingFiles(t *testing.T) {
	for _, c := range []struct {
		change func(fstest.MapFS)
		kind   string
		want   string
	}{
		{func(m fstest.MapFS) { delete(m, "toy/placements.csv") }, "", "speedup: open toy/placements.csv: file does " +
			"not exist"},
		{func(fstest.MapFS) {}, "a100", "speedup: open toy/placements-a100.csv: file does not exist"},
		{func(m fstest.MapFS) { delete(m, "toy/validation-8.csv"); delete(m, "toy/validation-32.csv") }, "",
			"speedup: toy: no validation-B.csv, want one for each measured batch size B"},
		{func(m fstest.MapFS) { m["toy/validation-08.csv"] = m["toy/validation-8.csv"] }, "",
			"speedup: toy: two files of batch size 8, want one"},
		{func(m fstest.MapFS) { m["toy/validation-.csv"] = m["toy/validation-8.csv"] }, "",
			"speedup: toy/validation-.csv: batch size in its name, want a whole number from 1 to 1073741824"},
		{func(m fstest.MapFS) { clear(m) }, "", "speedup: no folders, want one for each application"},
	} {
		fsys := toy()
		c.change(fsys)
		_, err := ReadProfiles(fsys, c.kind)
		if err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

func TestThroughputs(t *testing.T) {
	const text = "global_batch_size,4,1,2\n64,3,1,\n128,2.5,0,nan\n32,3.5,1.5,2\n"
	x, err := ReadThroughputs(strings.NewReader(text), "x.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		between Between
		w       Way
		want    float64
	}{
		{Nothing, Way{GPUs: 4, Nodes: 1, Batch: 64}, 192}, {Nothing, Way{GPUs: 2, Nodes: 1, Batch: 64}, 0},
		{Linear, Way{GPUs: 3, Nodes: 1, Batch: 32}, 88}, {Nothing, Way{GPUs: 3, Nodes: 1, Batch: 32}, 0},
		{Linear, Way{GPUs: 3, Nodes: 1, Batch: 64}, 0}, {Linear, Way{GPUs: 5, Nodes: 1, Batch: 64}, 0},
		{Linear, Way{GPUs: 4, Nodes: 1}, 320}, {Linear, Way{GPUs: 4, Nodes: 1, Batch: 65}, 0},
		{Linear, Way{GPUs: 4, Nodes: 1, Batch: 64, Accum: 2}, 0}, {Linear, Way{GPUs: 1, Nodes: 1}, 64},
	} {
		x.Between = c.between
		if got := x.Speed(0, c.w); !near(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.w, got, c.want)
		}
	}
	for _, c := range []struct {
		limits sched.BatchRange
		batch  int
	}{{sched.BatchRange{}, 128}, {sched.BatchRange{Max: 100}, 64}, {sched.BatchRange{PerGPU: 8}, 32},
		{sched.BatchRange{Min: 200}, 0}} {
		if w, speed := x.Best(0, 0, 1, c.limits); speed != 0 || w != (Way{}) {
			t.Errorf("%+v with speed %v on no GPUs", w, speed)
		}
		if w, _ := x.Best(0, 4, 1, c.limits); w.Batch != c.batch {
			t.Errorf("limits %+v: batch %d, want %d", c.limits, w.Batch, c.batch)
		}
	}
}

func TestBadTables(t *testing.T) {
	throughputs := func(text string) error {
		_, err := ReadThroughputs(strings.NewReader(text), "x.csv")
		return err
	}
	runs := func(text string) error {
		_, err := ReadTargetRuns(strings.NewReader(text), "x.csv")
		return err
	}
	const head = "global_batch_size,1,2\n"
	const runsHead = "dataset,network,batch_size,optimizer,learning_rate,run,target_metric,target_epoch\n"
	for _, c := range []struct {
		read       func(string) error
		text, want string
	}{
		{throughputs, "batch,1\n", `line 1: header "batch,1", want global_batch_size and numbers of GPUs`},
		{throughputs, "global_batch_size\n",
			`line 1: header "global_batch_size", want global_batch_size and numbers of GPUs`},
		{throughputs, "global_batch_size,one\n", `line 1: column "one", want a number of GPUs from 1 to 1073741824`},
		{throughputs, "global_batch_size,1,01\n", "line 1: 1 GPUs twice, want them once"},
		{throughputs, head, "line 1: no updates per second above 0, want at least one"},
		{throughputs, head + "64,0,\n", "line 2: no updates per second above 0, want at least one"},
		{throughputs, head + "64,1,-1\n", `line 2: 2 "-1", want a number >= 0`},
		{throughputs, head + "64,1,inf\n", `line 2: 2 "inf", want a number >= 0`},
		{throughputs, head + "64,1,1e10\n", "line 2: 1e+10 updates per second on 2 GPUs, want at most 1e+09"},
		{throughputs, head + "0,1,1\n", `line 2: global_batch_size "0", want a whole number from 1 to 1073741824`},
		{throughputs, head + "64,1,1\n64,1,1\n", "line 3: batch size 64 twice, want it once"},
		{runs, runsHead, "line 1: no rows, want at least one run"},
		{runs, runsHead + "d,n,8,o,1,1,x,5\n", `line 2: target_metric "x", want a number >= -1e+300`},
		{runs, runsHead + "d,n,8,o,1,1,.5,0\n", `line 2: target_epoch "0", want a whole number from 1 to 1073741824`},
		{runs, runsHead + "d,n,-8,o,1,1,.5,1\n", `line 2: batch_size "-8", want a whole number from 1 to 1073741824`},
	} {
		err := c.read(c.text)
		if want := "speedup: x.csv: " + c.want; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
