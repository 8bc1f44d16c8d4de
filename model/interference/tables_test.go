package interference_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/model/interference"
)

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join(shareddata.DataDir(t), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func eaco(t *testing.T) []interference.EaCORow {
	t.Helper()
	rows, err := interference.ReadEaCO(open(t, "colocation/eaco/eaco_tables.csv"), "eaco")
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-12*want }

// node8 is where the sets of the EaCO paper ran.
var node8 = interference.Place{GPU: "v100", Width: 8}

// Reference: EaCO, tables 1 to 4. Ensure that inflation, saving and use of each set follow from the tables.
func TestEaCODerived(t *testing.T) {
	rows := eaco(t)
	type solo struct{ energy, time, use float64 }
	alone := make(map[string]solo)
	for _, r := range rows[:4] {
		alone[r.Jobs[0]] = solo{r.EnergyKWh, r.JCTHours, r.Use}
	}
	var got []string
	bySize := make(map[int][]float64)
	for _, r := range rows[4:] {
		var sum solo
		for _, j := range r.Jobs {
			sum.energy, sum.time, sum.use = sum.energy+alone[j].energy, sum.time+alone[j].time, sum.use+alone[j].use
		}
		n := float64(len(r.Jobs))
		inflation := r.JCTHours * n / sum.time
		bySize[len(r.Jobs)] = append(bySize[len(r.Jobs)], inflation)
		got = append(got, fmt.Sprintf("%d: solo %.2f kWh, saves %.2f %%, inflation %.2f %%, loss %.2f %%, use %.3f",
			len(r.Jobs),
			sum.energy, 100*(1-r.EnergyKWh/sum.energy), 100*(inflation-1), 100*(1-1/inflation), r.Use/sum.use))
	}
	want := []string{
		"2: solo 72.60 kWh, saves 29.85 %, inflation 3.52 %, loss 3.40 %, use 0.974",
		"2: solo 80.11 kWh, saves 31.38 %, inflation 3.00 %, loss 2.92 %, use 1.046",
		"2: solo 89.07 kWh, saves 31.69 %, inflation 3.87 %, loss 3.73 %, use 1.032",
		"3: solo 106.29 kWh, saves 44.48 %, inflation 8.44 %, loss 7.78 %, use 0.995",
		"3: solo 113.80 kWh, saves 42.40 %, inflation 8.26 %, loss 7.63 %, use 1.048",
		"4: solo 161.67 kWh, saves 42.07 %, inflation 24.51 %, loss 19.68 %, use 0.961",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for n, want := range map[int]float64{2: 1.035, 3: 1.083, 4: 1.245} {
		sum := 0.0
		for _, x := range bySize[n] {
			sum += x / float64(len(bySize[n]))
		}
		if math.Abs(sum-want) > .0006 || interference.Generic(n) != want {
			t.Errorf("%d jobs: mean inflation %.4f, generic %v, want %v", n, sum, interference.Generic(n), want)
		}
	}
}

// Reference: EaCO, section 6.1. Ensure that energy is power times time: for sets of up to three jobs the mean time of
// the jobs, for four the time until the last was done, 48.18 h.
func TestEaCOEnergy(t *testing.T) {
	for _, r := range eaco(t) {
		hours := r.JCTHours
		if len(r.Jobs) == 4 {
			hours = 48.18
		}
		if kWh := r.PowerW * hours / 1000; math.Abs(kWh-r.EnergyKWh) > .03 {
			t.Errorf("%v: %v W x %v h = %.2f kWh, want %v", r.Jobs, r.PowerW, hours, kWh, r.EnergyKWh)
		}
	}
}

func seeded(t *testing.T) *interference.History {
	t.Helper()
	sets, err := interference.EaCOSets(eaco(t))
	if err != nil {
		t.Fatal(err)
	}
	h := &interference.History{}
	if err := h.Seed(sets); err != nil {
		t.Fatal(err)
	}
	return h
}

func members(models ...string) (list []interference.Member) {
	for _, m := range models {
		list = append(list, interference.Member{Model: m})
	}
	return list
}

// Reference: EaCO, tables 1 to 4. Ensure that predictions of times follow from the seeded history: AlexNet next to
// VGG-16 takes 35.804 h, next to ResNet-50 35.983 h; VGG-16 next to AlexNet 37.216 h, whatever the order of the set.
func TestEaCOPredictions(t *testing.T) {
	h := seeded(t)
	for _, c := range []struct {
		alone float64
		set   []interference.Member
		want  string
	}{
		{34.76, members("AlexNet", "VGG-16"), "35.804 exact"},
		{34.76, members("AlexNet", "ResNet-50"), "35.983 exact"},
		{34.76, members("AlexNet"), "34.760 alone"},
		{36.13, members("VGG-16", "AlexNet"), "37.216 exact"},
		{36.13, members("VGG-16", "ResNet-18", "AlexNet"), fmt.Sprintf("%.3f exact", 36.13*38.26/35.34)},
		{100, members("VGG-16", "ResNet-50"), "103.500 prior"},
		{100, members("VGG-16", "x", "y"), "108.300 prior"},
		{100, members("VGG-16", "AlexNet", "ResNet-50"), fmt.Sprintf("%.3f subset", 100*36.51/35.445*1.083/1.035)},
		{100, members("ResNet-50", "VGG-16", "AlexNet"), fmt.Sprintf("%.3f subset", 100*36.63/35.385*1.083/1.035)},
		{100, members("x", "VGG-16", "AlexNet", "ResNet-18"), "124.500 prior"},
	} {
		got, err := h.Slowdowns(node8, c.set, nil)
		if err != nil {
			t.Fatal(err)
		}
		if reported := fmt.Sprintf("%.3f %v", c.alone*got[0].Slow, got[0].Source); reported != c.want {
			t.Errorf("%v: %s, want %s", c.set, reported, c.want)
		}
	}
	for n, want := range map[int]float64{1: 1, 2: 37.01 / 35.63, 3: 38.28 / 35.3, 4: 44.21 / 35.5075,
		5: 1.245 * 5 / 4} {
		if got := h.Worst(n); math.Abs(got-want) > 1e-12 {
			t.Errorf("worst of %d: %v, want %v", n, got, want)
		}
	}
	if got := (&interference.History{}).Worst(2); got != 1.245 {
		t.Errorf("worst of 2 where nothing was measured %v, want 1.245", got)
	}
}

// Reference: Gavel, simulation_throughputs.json. Ensure that the pairs of the V100 table are what is known of them: 636
// of 1,759 ran, combined throughput 1.31 on average, 1.37 in the middle, below 1 in 22 %, above 1.5 in 34 %.
func TestGavelPairs(t *testing.T) {
	pairs, err := interference.ReadGavel(open(t, "colocation/gavel/simulation_throughputs.json"), "gavel")
	if err != nil {
		t.Fatal(err)
	}
	all, sum, below, above := 0, 0.0, 0, 0
	var ran []float64
	for i := range pairs {
		p := &pairs[i]
		if p.Type != "v100" {
			continue
		}
		if all++; p.Shared[0] == 0 && p.Shared[1] == 0 {
			continue
		}
		c := p.Shared[0]/p.Alone[0] + p.Shared[1]/p.Alone[1]
		ran, sum = append(ran, c), sum+c
		if c < 1 {
			below++
		}
		if c > 1.5 {
			above++
		}
	}
	slices.Sort(ran)
	n := float64(len(ran))
	got := fmt.Sprintf("%d of %d, mean %.2f, median %.2f, %.0f %% below 1, %.0f %% above 1.5", len(ran), all, sum/n,
		(ran[len(ran)/2-1]+ran[len(ran)/2])/2, 100*float64(below)/n, 100*float64(above)/n)
	if want := "636 of 1759, mean 1.31, median 1.37, 22 % below 1, 34 % above 1.5"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	h := &interference.History{}
	if err = h.Seed(interference.GavelSets(pairs)); err != nil {
		t.Fatal(err)
	}
	p := interference.Place{GPU: "k80", Width: 1}
	est, err := h.Slowdowns(p, members("ResNet-18 (batch size 32)", "ResNet-18 (batch size 16)"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := 4.795294551566172 / 2.539979567443098; !near(est[1].Slow, want) || est[1].Source != interference.Exact {
		t.Errorf("%+v, want %v", est, want)
	}
}

// Ensure that pairs of larger models are read: those that ran, each over its own pipeline alone.
func TestNormSpeeds(t *testing.T) {
	sets, err := interference.ReadNormSpeeds(open(t, "pal/colocation/norm_speed.csv"), "norm", "gpu")
	if err != nil {
		t.Fatal(err)
	}
	if err := new(interference.History).Seed(sets); err != nil {
		t.Fatal(err)
	}
	find := func(a, b string, width int32) interference.Set {
		i := slices.IndexFunc(sets, func(s interference.Set) bool {
			return s.Models[0] == a && s.Models[1] == b && s.Place.Width == width
		})
		if i < 0 {
			t.Fatalf("no %s next to %s", a, b)
		}
		return sets[i]
	}
	if s := find("vgg19/32", "resnet50/32", 1); !near(s.Slow[0], 1/.8) || !near(s.Slow[1], 1/.41) {
		t.Errorf("%+v", s)
	}
	if s := find("Bert-Base/256/16/4,8", "vgg19/32", 2); !near(s.Slow[0], .57/.32) || !near(s.Slow[1], 1/.84) {
		t.Errorf("%+v", s)
	}
	if len(sets) != 168-16 {
		t.Errorf("%d pairs, want the 152 that ran", len(sets))
	}
}

const eacoHeader = "set,n_jobs,avg_power_w,total_energy_kwh,avg_jct_h,avg_epoch_h,avg_mem_util_pct," +
	"max_mem_util_pct,avg_gpu_util_pct,max_gpu_util_pct\n"

// Ensure that a broken table is refused with what is wanted.
func TestTableErrors(t *testing.T) {
	eaco := func(s string) error { _, err := interference.ReadEaCO(strings.NewReader(s), "f"); return err }
	gavel := func(s string) error { _, err := interference.ReadGavel(strings.NewReader(s), "f"); return err }
	norm := func(s string) error {
		_, err := interference.ReadNormSpeeds(strings.NewReader(s), "f", "g")
		return err
	}
	for _, c := range []struct {
		read      func(string) error
		src, want string
	}{
		{eaco, "set\n", `line 1: no column "n_jobs", want the columns set, n_jobs, avg_power_w, total_energy_kwh, ` +
			`avg_jct_h, avg_epoch_h, avg_mem_util_pct, max_mem_util_pct, avg_gpu_util_pct, max_gpu_util_pct`},
		{eaco, eacoHeader + "J1,2,1,1,1,,1,1,1,1\n",
			`line 2: set "J1" of 2 jobs in 1 h, want as many names joined by + and a time > 0`},
		{eaco, eacoHeader + "J9,1,1,1,1,,1,1,1,1\n", `line 2: job "J9", want J1 to J4`},
		{eaco, eacoHeader + "J1,1,1,1,1,,1,1,101,1\n", `line 2: avg_gpu_util_pct "101", want a number from 0 to 100`},
		{gavel, "[]", "line 1: want a mapping of GPU types"},
		{gavel, `{"v100": 3}`, "line 1: want a mapping of jobs"},
		{gavel, "{\"v100\": {\n\"x\": {}}}", `line 2: job "x", want one as in ('Model', 1)`},
		{gavel, `{"v100": {"('A', 1)": {"null": -1}}}`, "line 1: rate of A alone, want a number from 0 to 1e9"},
		{gavel, `{"v100": {"('A', 1)": {"('B', 2)": [1, 2]}}}`, "line 1: rates of A next to B, want two numbers from " +
			"0 to 1e9 at equal width"},
		{gavel, `{"v100": {"('A', 1)": {"null": 1, "('B', 1)": [1, 2]}}}`, "B on 1 v100 in a pair, but not alone"},
		{gavel, `{"v100": {}, "v100": {}}`, `line 1: key "v100", want a mapping of GPU types, each once`},
		{gavel, `{} {}`, "line 1: more behind the closing brace, want nothing"},
		{norm, "index\n", `line 1: no column "model1", want the columns index, model1, dataset1, gpu_num1, ` +
			`batch_size1, speed1, co_pipeline_rank, pipeline_strategy, model2, dataset2, gpu_num2, batch_size2, ` +
			`speed2`},
		{norm, "index,model1,dataset1,gpu_num1,batch_size1,speed1,co_pipeline_rank,pipeline_strategy,model2,dataset2," +
			"gpu_num2,batch_size2,speed2\n0,a,d,1,2,NaN,NA,NA,b,d,1,2,1\n",
			`line 2: speed1 "NaN", want a number from 0 to 1`},
	} {
		if err := c.read(c.src); err == nil || err.Error() != "interference: f: "+c.want {
			t.Errorf("%q:\n got %v\nwant interference: f: %s", c.src, err, c.want)
		}
	}
	if _, err := interference.EaCOSets([]interference.EaCORow{{Jobs: []string{"a", "b"}, JCTHours: 1}}); err == nil ||
		err.Error() != "interference: a in a+b, but not alone" {
		t.Error(err)
	}
}

func FuzzTables(f *testing.F) {
	f.Add(eacoHeader + "J1,1,1,1,1,,1,1,1,1\nJ2,1,1,1,2,1,1,1,1,1\nJ1+J2,2,1,1,3,,1,1,1,1\n")
	f.Add(`{"v100": {"('A', 1)": {"null": 1, "('A', 1)": [1, 2]}}}`)
	f.Add("index,model1,dataset1,gpu_num1,batch_size1,speed1,co_pipeline_rank,pipeline_strategy,model2,dataset2," +
		"gpu_num2,batch_size2,speed2\n0,a,d,1,2,.5,NA,NA,b,d,1,2,1\n")
	f.Fuzz(func(t *testing.T, src string) {
		if rows, err := interference.ReadEaCO(strings.NewReader(src), "f"); err == nil {
			_, _ = interference.EaCOSets(rows)
		} else if !strings.HasPrefix(err.Error(), "interference: f: ") {
			t.Fatal(err)
		}
		if pairs, err := interference.ReadGavel(strings.NewReader(src), "f"); err == nil {
			_ = interference.GavelSets(pairs)
		} else if !strings.HasPrefix(err.Error(), "interference: f: ") {
			t.Fatal(err)
		}
		if _, err := interference.ReadNormSpeeds(strings.NewReader(src), "f", "g"); err != nil &&
			!strings.HasPrefix(err.Error(), "interference: f: ") {
			t.Fatal(err)
		}
	})
}
