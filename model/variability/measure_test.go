package variability

import (
	"bufio"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

func readRuns(t testing.TB, file string, by NameBy) []Run {
	t.Helper()
	runs, err := ReadRuns(bufio.NewReader(open(t, "variability", file)), file, by)
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

func measure(t testing.TB, runs []Run, norm Norm) *Measured {
	t.Helper()
	m, err := Measure(runs, norm)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// quantile is interpolated between two values, as the table below is.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	i := int(at)
	return sorted[i] + (sorted[min(i+1, len(sorted)-1)]-sorted[i])*(at-float64(i))
}

// Ensure that the published measurements have the statistics found independently.
//
// Reference: specification of PAL, 5.7: 5th and 95th percentile and maximum of runs and of GPUs' medians over the
// median of runs; median and 95th percentile of slowest over fastest run of a GPU.
func TestPublishedStatistics(t *testing.T) {
	for _, c := range []struct {
		file       string
		gpus, runs int
		want       []float64
	}{
		{"resnet-longhorn-agg.csv", 336, 1404, []float64{.950, 1.132, 3.569, .973, 1.063, 1.123, 1.085, 1.316}},
		{"bert-longhorn-agg.csv", 136, 1096, []float64{.979, 1.026, 1.295, .993, 1.010, 1.039, 1.041, 1.060}},
		{"pagerank-longhorn-agg.csv", 172, 880, []float64{.971, 1.003, 1.005, .971, 1.002, 1.004, 1.002, 1.004}},
		{"sgemm-longhorn-agg.csv", 392, 11087, []float64{.972, 1.024, 1.212, .972, 1.025, 1.201, 1.004, 1.012}},
		{"frontera-resnet-agg.csv", 296, 1480, []float64{.984, 1.063, 1.154, .990, 1.062, 1.145, 1.022, 1.045}},
		{"frontera-bert-agg.csv", 276, 1656, []float64{.993, 1.007, 1.064, .994, 1.006, 1.060, 1.005, 1.008}},
		{"frontera-pagerank-agg.csv", 248, 1240, []float64{.999, 1.001, 1.001, .999, 1.001, 1.001, 1.001, 1.002}},
		{"resnet-ls6-agg.csv", 219, 219, []float64{.971, 1.045, 2.201, .971, 1.045, 2.201, 1, 1}},
	} {
		runs := readRuns(t, c.file, ByUUID)
		m := measure(t, runs, ByRow)
		if len(m.GPUs) != c.gpus || len(runs) != c.runs || m.Runs != c.runs {
			t.Errorf("%s: %d GPUs, %d runs, want %d, %d", c.file, len(m.GPUs), len(runs), c.gpus, c.runs)
		}
		var rows, mids, within []float64
		best := make(map[string]float64)
		for _, run := range runs {
			rows = append(rows, run.Perf/m.Norm)
			if b, ok := best[run.GPU]; !ok || run.Perf < b {
				best[run.GPU] = run.Perf
			}
		}
		for _, e := range m.GPUs {
			mids = append(mids, e.Score)
			within = append(within, e.Worst*m.Norm/best[e.GPU])
		}
		got := []float64{quantile(rows, .05), quantile(rows, .95), slices.Max(rows), quantile(mids, .05),
			quantile(mids, .95),
			slices.Max(mids), quantile(within, .5), quantile(within, .95)}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > .0005 { // the table has three digits
				t.Errorf("%s: statistic %d is %.5f, want %.3f", c.file, i, got[i], c.want[i])
			}
		}
		factor := m.Norm / measure(t, runs, ByGPU).Norm
		t.Logf("%s: %.4f; median of runs over median of GPUs %.5f", c.file, got, factor)
		if math.Abs(factor-1) > .003 {
			t.Errorf("%s: the two norms differ by a factor of %v, want about 1", c.file, factor)
		}
	}
}

// Ensure that the slow ResNet-50 runs on Longhorn are seen for what they are: 22 runs above 1.3 on 14 GPUs of 4 hosts,
// none of which is slow in half of its runs.
//
// Reference: specification of PAL, 5.7, finding 1.
func TestOutliersAreTransient(t *testing.T) {
	runs := readRuns(t, "resnet-longhorn-agg.csv", ByUUID)
	m := measure(t, runs, ByRow)
	slow, gpus, hosts := 0, make(map[string]int), make(map[string]bool)
	for _, run := range runs {
		if run.Perf > 1.3*m.Norm {
			slow++
			gpus[run.GPU]++
			hosts[run.Node] = true
		}
	}
	if slow != 22 || len(gpus) != 14 || len(hosts) != 4 {
		t.Errorf("%d slow runs on %d GPUs of %d hosts, want 22 on 14 of 4", slow, len(gpus), len(hosts))
	}
	for _, e := range m.GPUs {
		if n := gpus[e.GPU]; 2*n >= e.Count && n > 0 || n > 0 && (e.Score < .97 || e.Score > 1.05) {
			t.Errorf("GPU %s: %d of %d runs slow, score %v", e.GPU, n, e.Count, e.Score)
		}
	}
}

// Ensure that the classes of Frontera join by UUID, and hardly correlate; those of Longhorn join by place.
//
// Reference: specification of PAL, 5.7, finding 3, and the notes with the data.
func TestJoinPublished(t *testing.T) {
	join := func(by NameBy, files ...string) (*Scores, []Missing) {
		var classes []ClassRuns
		for i, file := range files {
			classes = append(classes, ClassRuns{Labels[i], measure(t, readRuns(t, file, by), ByGPU)})
		}
		s, missing, err := Join("joined", classes)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.GPUs)+len(missing) == 0 ||
			!slices.IsSortedFunc(s.GPUs, func(a, b GPU) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%d GPUs, %d missing, or out of order", len(s.GPUs), len(missing))
		}
		return s, missing
	}
	two, missing := join(ByUUID, "frontera-resnet-agg.csv", "frontera-bert-agg.csv")
	if len(two.GPUs) != 276 || len(missing) != 20 {
		t.Errorf("%d GPUs in two classes, %d left out, want 276 and 20", len(two.GPUs), len(missing))
	}
	if r := pearson(two.PM[0], two.PM[1]); math.Abs(r-.09) > .005 {
		t.Errorf("ResNet and BERT correlate by %.3f, want 0.09", r)
	}
	three, _ := join(ByUUID, "frontera-resnet-agg.csv", "frontera-bert-agg.csv", "frontera-pagerank-agg.csv")
	if len(three.GPUs) != 228 || three.GPUs[0].Node == "" {
		t.Errorf("%d GPUs in three classes, first %+v, want 228 with nodes", len(three.GPUs), three.GPUs[0])
	}
	longhorn, _ := join(ByPlace, "resnet-longhorn-agg.csv", "bert-longhorn-agg.csv", "pagerank-longhorn-agg.csv")
	if len(longhorn.GPUs) != 20 {
		t.Errorf("%d GPUs of Longhorn in three classes, want 20", len(longhorn.GPUs))
	}
	pair, _ := join(ByPlace, "resnet-longhorn-agg.csv", "pagerank-longhorn-agg.csv")
	if len(pair.GPUs) != 128 {
		t.Errorf("%d GPUs of Longhorn in ResNet-50 and PageRank, want 128", len(pair.GPUs))
	}
}

func pearson(x, y []float64) float64 {
	mx, my := mean(x), mean(y)
	var xy, xx, yy float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
	}
	return xy / math.Sqrt(xx*yy)
}

func TestReadRuns(t *testing.T) {
	const text = "exp,perf,uuid,cabinet,node,device,ts\nresnet,2.5,g1,c002,004,1,1646195998\nresnet,3,g2,-1,-1,0,\n"
	got, err := ReadRuns(strings.NewReader(text), "f.csv", ByUUID)
	want := []Run{{"g1", "c002-4", 2.5, sched.Time(1646195998 * time.Second)}, {"g2", "", 3, 0}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = ReadRuns(strings.NewReader("perf,node,cabinet,device\n1e3,7,c9,2\n"), "f.csv", ByPlace)
	if err != nil || !reflect.DeepEqual(got, []Run{{"c9-7-2", "c9-7", 1000, 0}}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, c := range []struct{ text, want string }{
		{"uuid\n", `line 1: no column "perf", want the columns uuid, perf`},
		{"uuid,perf\n", `line 1: no runs, want a row for each`},
		{"uuid,perf\n,1\n", `line 2: GPU "", node "", want a name of 1 to 256 bytes without control characters`},
		{"uuid,perf\na,1\na,0\n", `line 3: perf "0", want a number > 0`},
		{"uuid,perf\na,Inf\n", `line 2: perf "Inf", want a number in 1e-18..1e+18`},
		{"uuid,perf,ts\na,1,noon\n", `line 2: ts "noon", want seconds of Unix time, a number > 0`},
	} {
		if _, err := ReadRuns(strings.NewReader(c.text), "f.csv", ByUUID); err == nil ||
			err.Error() != "variability: f.csv: "+c.want {
			t.Errorf("%q:\n%v\nwant variability: f.csv: %s", c.text, err, c.want)
		}
	}
	if _, err := ReadRuns(strings.NewReader(text), "f.csv", ByPlace); err == nil ||
		!strings.Contains(err.Error(), "line 3: GPU \"\"") {
		t.Errorf("a GPU without a place: %v", err)
	}
}

func TestMeasureByHand(t *testing.T) {
	runs := []Run{{"b", "n1", 30, 5}, {"a", "", 10, 7}, {"a", "n0", 12, 9}, {"a", "", 50, 8}, {"c", "", 20, 0}}
	m := measure(t, runs, ByGPU)
	// The medians are 12, 30 and 20. Of a, the distances from 12 are 2, 0 and 38.
	stderr := 1.2533 * 1.4826 * 2 / math.Sqrt(3) / 20
	want := []Estimate{
		{"a", "n0", .6, .5, 2.5, .75, stderr, 2.5, 3, 9},
		{"b", "n1", 1.5, 1.5, 1.5, 0, math.Inf(1), 1.5, 1, 5},
		{"c", "", 1, 1, 1, 0, math.Inf(1), 1, 1, 0},
	}
	if m.Norm != 20 || m.Runs != 5 || !reflect.DeepEqual(m.GPUs, want) {
		t.Errorf("%+v, want norm 20 and\n%+v", m, want)
	}
	if rows := measure(t, runs, ByRow); rows.Norm != 20 || rows.GPUs[0].Score != .6 {
		t.Errorf("by rows %+v", rows)
	}
	for _, bad := range [][]Run{nil, {{"", "", 1, 0}}, {{"a", "", 0, 0}}, {{"a", "", math.NaN(), 0}},
		{{"a", "", 1, 0}, {"b", "", 1e9, 0}, {"c", "", 1, 0}}} {
		if _, err := Measure(bad, ByGPU); err == nil || !strings.HasPrefix(err.Error(), "variability: ") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// Ensure that the bounds hold the true median as often as they say, for a law that is far from normal.
func TestCoverage(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for _, n := range []int{2, 3, 5, 6, 9, 25, 80} {
		inside := 0
		const rounds = 4000
		var coverage float64
		for range rounds {
			runs := make([]Run, n)
			for i := range runs {
				runs[i] = Run{GPU: "a", Perf: math.Exp2(r.NormFloat64() * 3)} // median 1
			}
			e := estimate(runs)
			coverage = e.Coverage
			if e.Low <= 1 && 1 <= e.High {
				inside++
			}
		}
		if share := float64(inside) / rounds; math.Abs(share-coverage) > .015 || (n >= 6) != (coverage >= .95) {
			t.Errorf("%d runs: bounds hold the median in %.3f of all rounds, said %.4f", n, share, coverage)
		}
	}
	for n := 1; n < 3000; n++ {
		if k, c := middle(n); k < 1 || k > (n+1)/2 || c < 0 || c >= 1 {
			t.Fatalf("%d runs: k = %d, coverage %v", n, k, c)
		}
	}
}

// Ensure that the order of runs does not matter, and their unit not to scores.
func TestMeasureIsAFunctionOfTheSet(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	for range 50 {
		runs := make([]Run, 1+r.IntN(60))
		for i := range runs {
			runs[i] = Run{GPU: string(rune('a' + r.IntN(8))), Perf: math.Exp2(float64(r.IntN(9))),
				At: sched.Time(r.IntN(9))}
		}
		want := measure(t, runs, ByGPU)
		for i := range runs {
			runs[i].Perf *= 8
		}
		r.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
		got := measure(t, runs, ByGPU)
		if got.Norm != 8*want.Norm || !reflect.DeepEqual(got.GPUs, want.GPUs) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

func TestJoinByHand(t *testing.T) {
	of := func(gpus ...Estimate) *Measured { return &Measured{GPUs: gpus} }
	a := of(Estimate{GPU: "g1", Score: 1}, Estimate{GPU: "g2", Score: 1.5}, Estimate{GPU: "g4", Score: 1})
	b := of(Estimate{GPU: "g2", Node: "n", Score: .5}, Estimate{GPU: "g3", Score: 1}, Estimate{GPU: "g4", Score: 2})
	s, missing, err := Join("j", []ClassRuns{{"A", a}, {"B", b}})
	want := &Scores{Name: "j", GPUs: []GPU{{"g2", "n"}, {"g4", ""}}, Classes: []string{"A", "B"},
		PM: [][]float64{{1.5, 1}, {.5, 2}}}
	if err != nil || !reflect.DeepEqual(s, want) || !slices.Equal(missing, []Missing{{"g1", "B"}, {"g3", "A"}}) {
		t.Errorf("%+v, %v, %v", s, missing, err)
	}
	if _, missing, err := Join("j", []ClassRuns{{"A", of(Estimate{GPU: "x", Score: 1})}, {"B", b}}); err == nil ||
		len(missing) != 4 {
		t.Errorf("nothing in common: %v, %v", missing, err)
	}
}

// FuzzReadRuns ensures that no file makes the reader panic, that errors say where, and that what is read can be
// measured.
func FuzzReadRuns(f *testing.F) {
	f.Add("uuid,perf,ts\na,1,5\nb,2,\n", false)
	f.Add("cabinet,node,device,perf\nc1,01,2,3\n", true)
	f.Add("uuid,perf\na,1e-18\n", false)
	f.Fuzz(func(t *testing.T, text string, byPlace bool) {
		by := ByUUID
		if byPlace {
			by = ByPlace
		}
		runs, err := ReadRuns(strings.NewReader(text), "f", by)
		if err != nil {
			checkError(t, err)
			return
		}
		m, err := Measure(runs, ByGPU)
		if err != nil {
			return // scores beyond all bounds
		}
		for _, e := range m.GPUs {
			if !(e.Low <= e.Score && e.Score <= e.High && e.High <= e.Worst && e.Count >= 1) {
				t.Errorf("estimate %+v is out of order", e)
			}
		}
	})
}
