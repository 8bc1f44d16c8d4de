package variability

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// Ensure that models are of the classes that the released code gives them.
//
// Reference: released code, workload/workload.py and blox/job_state.py.
func TestPublishedClasses(t *testing.T) {
	for _, c := range []struct {
		of    func(string) (string, bool)
		model string
		class string
		known bool
	}{
		{Published, "resnet50", "A", true}, {Published, "ResNet-50", "A", true}, {Published, "BERT", "B", true},
		{Published, "GPT2", "B", true}, {Published, "DCGAN", "B", true}, {Published, "vgg19", "C", true},
		{Published, "PointNet", "D", true}, {Published, "vgg16", "A", false}, {Published, "", "A", false},
		{Published, "bert2", "A", false},
		{Synergy, "alexnet", "A", true}, {Synergy, "res50", "A", true}, {Synergy, "res18", "C", true},
		{Synergy, "mobilenet", "D", true},
		{Synergy, "ShuffleNet", "D", true}, {Synergy, "lstm", "D", true}, {Synergy, "gnmt", "B", true},
		{Synergy, "transformer", "B", true},
		{Synergy, "deepspeech", "B", true}, {Synergy, "m5", "A", false},
	} {
		if class, known := c.of(c.model); class != c.class || known != c.known {
			t.Errorf("%q: class %s, known %v, want %s, %v", c.model, class, known, c.class, c.known)
		}
	}
}

func TestWeighted(t *testing.T) {
	got, err := Weighted([]Kernel{{3, Features{10, 90}}, {1, Features{50, 10}}, {0, Features{100, 100}}})
	if err != nil || got != (Features{20, 70}) {
		t.Errorf("%+v, %v, want 20 and 70", got, err)
	}
	for _, bad := range [][]Kernel{nil, {{0, Features{1, 1}}}, {{-1, Features{}}}, {{1, Features{101, 0}}},
		{{1, Features{0, math.NaN()}}}} {
		if _, err := Weighted(bad); err == nil {
			t.Errorf("%+v has features", bad)
		}
	}
}

// Ensure that classes that are plain to see are found and ordered from the most compute-bound on, from few applications
// and from many.
func TestTrainFindsClusters(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	centres := []Features{{20, 90}, {45, 60}, {30, 15}, {85, 10}}
	for _, each := range []int{1, 2, 40} {
		for k := 3; k <= 4; k++ {
			var apps []Features
			for range each {
				for _, c := range centres[:k] {
					apps = append(apps, Features{c.DRAMUtil + 8*r.Float64() - 4, c.PeakFUUtil + 8*r.Float64() - 4})
				}
			}
			want, err := Train(apps, k)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range apps {
				if got := want.Class(f); got != i%k {
					t.Errorf("%d classes, %d each: application %+v is of class %d, want %d of %+v", k, each, f, got,
						i%k, want)
				}
			}
			r.Shuffle(len(apps), func(i, j int) { apps[i], apps[j] = apps[j], apps[i] })
			if got, err := Train(apps, k); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("in another order the classes are %+v, want %+v", got, want)
			}
		}
	}
}

// Ensure that the best of the random starts is as good as trying all, or nearly so, and never better.
func TestRestartsAgreeWithAll(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 1))
	worse := 0
	for range 100 {
		apps := make([]Features, 5+r.IntN(5))
		for i := range apps {
			apps[i] = Features{100 * r.Float64(), 100 * r.Float64()}
		}
		slices.SortFunc(apps, Features.compare)
		k := 1 + r.IntN(4)
		exact, quick := &planeSearch{apps: apps, classes: k, cost: math.Inf(1)},
			&planeSearch{apps: apps, classes: k, cost: math.Inf(1)}
		exact.all(nil, 0)
		quick.restarts(32)
		if quick.cost < exact.cost-1e-6 || quick.cost > 1.2*exact.cost+1e-6 {
			t.Fatalf("%d classes of %+v: cost %v, the best is %v", k, apps, quick.cost, exact.cost)
		}
		if quick.cost > exact.cost+1e-6 {
			worse++
		}
	}
	if worse > 5 {
		t.Errorf("%d of 100 searches miss the best classes", worse)
	}
}

func TestTrainRefuses(t *testing.T) {
	two := []Features{{1, 2}, {1, 2}, {3, 4}}
	for _, c := range []struct {
		apps []Features
		k    int
		want string
	}{
		{two, 0, "variability: 0 classes, want 1..4"},
		{two, 5, "variability: 5 classes, want 1..4"},
		{two, 3, "variability: 2 applications that differ, want at least 3 for as many classes"},
		{[]Features{{-1, 0}}, 1, "variability: application 0: {DRAMUtil:-1 PeakFUUtil:0}, want features in 0..100"},
		{make([]Features, MaxApps+1), 1, fmt.Sprintf("variability: %d applications, want at most %d", MaxApps+1,
			MaxApps)},
	} {
		if _, err := Train(c.apps, c.k); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// Ensure that the class of a job is found from its times on a few GPUs of the released code's draw, with noise, and
// that nothing is reported where nothing can be.
func TestClassOf(t *testing.T) {
	s := &Scores{Name: "s", GPUs: make([]GPU, 6), Classes: []string{"A", "B", "C"}, PM: [][]float64{
		{1, 1.1, .9, 1.3, 1, 1}, {1, 1.02, .99, 1, 1.05, 1}, {1, 1, 1, 1, 1, 1}}}
	times := func(class int, noise float64, gpus ...int) (seen []Seen) {
		for i, g := range gpus {
			seen = append(seen, Seen{g, 7 * s.PM[class][g] * (1 + noise*math.Sin(float64(i)))})
		}
		return seen
	}
	for _, c := range []struct {
		name     string
		seen     []Seen
		want     int
		reported bool
	}{
		{"nothing seen", nil, 0, false},
		{"two GPUs", times(0, 0, 3, 1), 0, false},
		{"two GPUs, many times", times(1, 0, 3, 1, 3, 1, 1), 0, false},
		{"A", times(0, 0, 0, 1, 2, 3), 0, true},
		{"A with noise", times(0, .01, 0, 1, 2, 3, 4), 0, true},
		{"B", times(1, .002, 0, 1, 2, 3, 4, 5), 1, true},
		{"C", times(2, .002, 0, 1, 2, 3, 4, 5), 2, true},
		{"GPUs that are alike in all classes", times(1, 0, 0, 5, 0, 5), 0, false},
		{"B or C, alike on them", []Seen{{0, 7}, {3, 7}, {5, 7}}, 1, true},
	} {
		class, reported, err := s.ClassOf(c.seen)
		if err != nil || class != c.want || reported != c.reported {
			t.Errorf("%s: class %d, said %v, %v, want %d, %v", c.name, class, reported, err, c.want, c.reported)
		}
	}
	for _, bad := range [][]Seen{{{6, 1}}, {{-1, 1}}, {{0, 0}}, {{0, math.NaN()}}} {
		if _, _, err := s.ClassOf(bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

// Ensure that with the scores that the released code drew, a job of A, B or D that has run on 16 GPUs with 0.2 % noise
// is never taken for one of another class that matters.
func TestClassOfOnGoldenScores(t *testing.T) {
	s := readScores(t, "golden", "artifact-gpus-64.csv")
	r := rand.New(rand.NewPCG(11, 1))
	right, wrong := 0, 0
	for i := range 400 {
		truth := i % len(s.Classes)
		var seen []Seen
		for _, g := range r.Perm(64)[:16] {
			seen = append(seen, Seen{g, .3 * s.PM[truth][g] * (1 + .002*r.NormFloat64())})
		}
		class, reported, err := s.ClassOf(seen)
		switch {
		case err != nil:
			t.Fatal(err)
		case reported && class == truth:
			right++
		case reported:
			wrong++
		}
	}
	t.Logf("%d of 400 said right, %d wrong, the others not", right, wrong)
	if right < 300 || wrong > 0 {
		t.Errorf("%d of 400 said right, %d wrong, want most and none", right, wrong)
	}
}
