package speedup

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/sched"
)

func t4Profiles(t testing.TB) map[string]*Profile {
	t.Helper()
	list, err := ReadProfiles(os.DirFS(filepath.Join(shareddata.DataDir(t), "pollux/osdi21/traces")), "")
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string]*Profile)
	for _, p := range list {
		m[p.Name] = p
	}
	return m
}

// Ensure that the best speed and batch size by application, epoch and width are those that were computed independently.
// They agree to the digits given, but for widths on numbers of nodes that were not measured: those were found by a
// triangulation whose ties cannot be reported.
//
// Reference: derived goodputs; specification of BOA, 3.5.
func TestGoodputs(t *testing.T) {
	profiles := t4Profiles(t)
	rows := readRows(t, "pollux/derived/goodput_t4.csv")
	triangulated := []string{"20", "28", "40", "56"}
	worst, exact := 0.0, 0
	for _, row := range rows[1:] {
		p, epoch, gpus, batch := profiles[row[0]], atoi(t, row[1]), atoi(t, row[3]), atoi(t, row[5])
		size, want := atof(t, row[2]), atof(t, row[4])
		if math.Abs(p.Sizes()[epoch]-size) > 1e-9*size {
			t.Errorf("%s epoch %d: progress %v, want %v", p.Name, epoch, p.Sizes()[epoch], size)
		}
		w, got := p.Best(epoch, gpus, ceilDiv(gpus, 4), sched.BatchRange{})
		off := math.Abs(got/want - 1)
		if slices.Contains(triangulated, row[3]) {
			if worst = max(worst, off); off > .05 {
				t.Errorf("%v: %v, want within 5 %%", row, got)
			}
			continue
		}
		exact++
		if off > 5.1e-9 || w.Batch != batch {
			t.Errorf("%v: %.9g with batch size %d", row, got, w.Batch)
		}
		if again := p.Speed(epoch, w); again != got {
			t.Errorf("%v: Speed is %v, Best %v", row, again, got)
		}
	}
	t.Logf("%d of %d rows agree to 9 digits, the others within %.1f %%", exact, len(rows)-1, 100*worst)
}

// Ensure that whatever placement a job is given, up to 16 nodes of 4 GPUs, and whatever batch size it takes, it is
// known how fast it is: a hole in the tables would stop it for good.
func TestNoHoles(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	for name, p := range t4Profiles(t) {
		for range 20000 {
			placement, gpus := make([]int, 16), 0
			for range 1 + r.IntN(16) {
				i := r.IntN(16)
				placement[i] = 1 + r.IntN(4)
			}
			for _, g := range placement {
				gpus += g
			}
			low := max(p.Limits.Start, p.Limits.MinPerGPU*gpus)
			if low > p.Limits.Max {
				continue
			}
			w := Way{Batch: low + r.IntN(p.Limits.Max-low+1)}
			if perGPU, _, _, ok := p.Limits.split(Way{GPUs: gpus, Batch: w.Batch}); !ok {
				t.Fatalf("%s: batch %d on %d GPUs makes %d on each", name, w.Batch, gpus, perGPU)
			}
			if speed := p.SpeedPlaced(0, placement, w); speed <= 0 {
				t.Fatalf("%s: no speed on %v with batch %d", name, placement, w.Batch)
			}
		}
	}
}

// Ensure that hours on one GPU and speedups are those of the specification.
//
// Reference: specification of BOA, 5.5.
func TestOneGPUHours(t *testing.T) {
	profiles := t4Profiles(t)
	for name, want := range map[string]string{ // hours, then speedups on 2, 4, ... 64 GPUs
		"bert":        "3.76 2.07 4.09 5.50 10.2 13.9 13.3",
		"cifar10":     "1.03 1.76 3.38 4.95 8.53 7.95 5.86",
		"deepspeech2": "4.58 1.83 3.40 5.12 8.43 8.75 9.93",
		"yolov3":      "9.37 1.82 2.58 2.23 3.78 3.89 4.66",
		"imagenet":    "147.9 1.93 3.54 6.63 12.6 21.8 34.6",
		"ncf":         "0.013",
	} {
		p := profiles[name]
		seconds := func(gpus int) float64 {
			sum := 0.0
			for e, size := range p.Sizes() {
				_, speed := p.Best(e, gpus, ceilDiv(gpus, 4), sched.BatchRange{})
				sum += size / speed
			}
			return sum
		}
		for i, number := range strings.Fields(want) {
			x := seconds(1) / 3600
			if i > 0 {
				x = seconds(1) / seconds(1<<i)
			}
			_, decimals, _ := strings.Cut(number, ".")
			if got := strconv.FormatFloat(x, 'f', len(decimals), 64); got != number {
				t.Errorf("%s: number %d is %s, want %s", name, i, got, number)
			}
		}
	}
}

// Ensure that the profiles of other clusters with the same files are read too.
func TestOtherSteps(t *testing.T) {
	root := os.DirFS(filepath.Join(shareddata.DataDir(t), "pollux/sia/traces"))
	for _, name := range []string{"bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"} {
		for _, kind := range []string{"aws", "azure", "dgx", "dgx-ext", "quad", "rtx"} {
			s, err := ReadSteps(root, name, kind)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			least, _ := s.PerGPU()
			if step, _, ok := s.At(1, 1, least); !ok || step <= 0 {
				t.Errorf("%s on %s: step %v on one GPU, %v", name, kind, step, ok)
			}
		}
	}
	_, err := ReadSteps(root, "gpt_pmp", "rtx")
	const want = "speedup: gpt_pmp/placements-rtx.csv: line 2: step of 0.099 s with 0.3275 s of synchronisation, " +
		"want at most 1e+09 s, synchronisation included"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Ensure that scaling factors with a free and a fixed batch size are those of the specification.
//
// Reference: specification of elastic scaling, section 4, test 4.
func TestElasticFlow(t *testing.T) {
	free := map[string][]float64{"resnet50": {1, 1.8708, 3.3584, 5.6303}, "vgg16": {1, 1.9204, 3.5335, 6.0872},
		"bert": {1, 1.5887, 2.3639, 2.7956}}
	fixed := map[string][]float64{"resnet50": {1, 1.7300, 2.6741, 3.1076}, "vgg16": {1, 1.7882, 2.9200, 3.8254},
		"bert": {1, 1.4333, 1.7173, 1.8340}}
	for name := range free {
		x := readThroughputs(t, "throughputs_A100/"+name+".csv")
		for i, gpus := range []int{1, 2, 4, 8} {
			for _, c := range []struct {
				limits sched.BatchRange
				want   float64
			}{{sched.BatchRange{}, free[name][i]}, {sched.BatchRange{Min: 64, Max: 64}, fixed[name][i]}} {
				_, one := x.Best(0, 1, 1, c.limits)
				w, speed := x.Best(0, gpus, 1, c.limits)
				if got := speed / one; math.Abs(got-c.want) > 5.1e-5 {
					t.Errorf("%s on %d GPUs: %.4f with batch %d, want %.4f", name, gpus, got, w.Batch, c.want)
				}
			}
		}
	}
	files, _ := filepath.Glob(filepath.Join(shareddata.DataDir(t), "colocation/elasticflow/*/*.csv"))
	if len(files) != 13 {
		t.Errorf("%d tables, want 13", len(files))
	}
	for _, file := range files {
		rel, _ := filepath.Rel(filepath.Join(shareddata.DataDir(t), "colocation/elasticflow"), file)
		readThroughputs(t, rel)
	}
}

func readThroughputs(t *testing.T, name string) *Throughputs {
	t.Helper()
	f, err := os.Open(filepath.Join(shareddata.DataDir(t), "colocation/elasticflow", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, err := ReadThroughputs(f, name)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Reference: specification of elastic scaling, section 7.
func TestZeus(t *testing.T) {
	f, err := os.Open(filepath.Join(shareddata.DataDir(t), "energy/zeus/summary_train.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runs, err := ReadTargetRuns(f, "summary_train.csv")
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 3759 {
		t.Errorf("%d runs, want 3759", len(runs))
	}
	for _, c := range []struct {
		dataset, network string
		target           float64
		epochs           map[int]float64
	}{
		{"cifar100", "shufflenetv2", .60, map[int]float64{32: 17, 128: 19, 256: 30, 512: 42, 1024: 77, 2048: 191}},
		{"cifar100", "shufflenetv2", .65, map[int]float64{32: 40, 64: 58, 128: 78, 256: 218, 512: 0, 1024: 0, 2048: 0,
			4096: 0}},
		{"imagenet", "resnet50", .60, map[int]float64{64: 19, 128: 16, 192: 12, 256: 12, 360: 12, 512: 13, 1024: 16}},
		{"librispeech", "deepspeech2", 40, map[int]float64{8: 6.5, 32: 7, 96: 8, 192: 10, 256: 13, 512: 0}},
		{"squad", "bert_base_uncased", 84, map[int]float64{4: 4, 56: 4}},
	} {
		var e *Epochs
		if e, err = EpochsTo(runs, c.dataset, c.network, c.target, 50000); err != nil {
			t.Fatal(err)
		}
		for batch, want := range c.epochs {
			if got := e.To(batch); got != want {
				t.Errorf("%s to %v with batch %d: %v epochs, want %v", c.network, c.target, batch, got, want)
			}
			if gain := e.Gain(0, batch); (gain == 0) != (want == 0) {
				t.Errorf("%s with batch %d: gain %v at %v epochs", c.network, batch, gain, want)
			}
		}
	}
	_, err = EpochsTo(runs, "cifar100", "shufflenetv2", 2, 1)
	const want = "speedup: of the runs of shufflenetv2 on cifar100, at 0 batch sizes with the target 2, " +
		"none met it, want one that did"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func readRows(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join(shareddata.DataDir(t), name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func atof(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
