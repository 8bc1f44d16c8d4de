package interference_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
)

const second = sched.Time(time.Second)

// Ensure that the priors are what the documentation says.
func TestPriors(t *testing.T) {
	for n, want := range map[int]float64{0: 1, 1: 1, 2: 1.035, 3: 1.083, 4: 1.245, 8: 2.49} {
		if got := interference.Generic(n); !near(got, want) {
			t.Errorf("generic of %d: %v, want %v", n, got, want)
		}
	}
	for sum, speed := range map[float64]float64{0: 1, .5: 1, .75: 1, .76: .97, 1: .97, 1.01: .926, 1.25: .926,
		1.3: .843, 1.6: .752, 1.75: .752, 1.8: .699, 2: .699, 4: .699 / 2} {
		if got := interference.ByUse(sum); !near(got, 1/speed) {
			t.Errorf("use %v: %v, want %v", sum, got, 1/speed)
		}
	}
	use := func(u ...float64) (list []interference.Member) {
		for i, x := range u {
			list = append(list, interference.Member{Model: fmt.Sprint(i), Use: x})
		}
		return list
	}
	h := &interference.History{}
	for _, c := range []struct {
		how  sched.Mechanism
		set  []interference.Member
		want float64
	}{
		{sched.TimeSlicing, use(.9, .9), 1.035}, {sched.MPS, use(.9, .7), 1 / .752}, {sched.MPS, use(.9, 0), 1.035},
		{sched.MIG, use(.4, .9), 1}, {sched.MIG, use(.9, .1, .1), 2.7}, {sched.MIG, use(0, .1), 2},
		{sched.MIG, use(.9), 1},
	} {
		est, err := h.Slowdowns(interference.Place{How: c.how}, c.set, nil)
		if err != nil || !near(est[0].Slow, c.want) {
			t.Errorf("%v of %v: %+v %v, want %v", c.how, c.set, est, err, c.want)
		}
	}
}

// Reference: EaCO, Algorithm 2. Ensure that the paper's rule takes what a data-parallel job cannot use: GPUs with 2 and
// 14 GB free, a job of 4 GB on each.
func TestMemoryRules(t *testing.T) {
	free := []float64{2, 14}
	if !interference.FitsSum(free, 8) {
		t.Error("want the sum to do")
	}
	if interference.FitsSum(free, 16) {
		t.Error("want more free memory than is needed, not as much")
	}
}

// Ensure that measurements average, that their error shrinks, that old ones count for less, and that places are kept
// apart.
func TestRecord(t *testing.T) {
	h := &interference.History{HalfLife: time.Hour}
	record := func(p interference.Place, at sched.Time, slow ...float64) {
		t.Helper()
		if err := h.Record(p, []string{"b", "a"}, slow, at); err != nil {
			t.Fatal(err)
		}
	}
	est := func(p interference.Place) interference.Estimate {
		t.Helper()
		e, err := h.Slowdowns(p, members("a", "b"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return e[0]
	}
	record(node8, 0, 9, 1)
	if e := est(node8); e.Slow != 1 || e.Weight != 1 || !math.IsInf(e.Error, 1) {
		t.Errorf("%+v after one", e)
	}
	record(node8, 0, 9, 2)
	if e := est(node8); e.Slow != 1.5 || e.Weight != 2 || !near(e.Error, .5) {
		t.Errorf("%+v after 1 and 2, want 1.5 with an error of 0.5", e)
	}
	record(node8, 3600*second, 9, 3)
	if e := est(node8); e.Slow != 2.25 || e.Weight != 2 || e.Last != 3600*second {
		t.Errorf("%+v, want 3 to count as much as the two before", e)
	}
	for _, p := range []interference.Place{{GPU: "a100", Width: 8}, {GPU: "v100", Width: 4},
		{GPU: "v100", Width: 8, How: sched.MPS}} {
		if e := est(p); e.Source != interference.Prior {
			t.Errorf("%+v in %v, want nothing known there", e, p)
		}
	}
	if w := h.Worst(2); w != 9 {
		t.Errorf("worst %v, want 9", w)
	}
}

// Ensure that equal models are two jobs: the faster of them is known as the first.
func TestTwins(t *testing.T) {
	h := &interference.History{}
	for _, slow := range [][]float64{{1.5, 1.1, 2}, {1.1, 1.5, 2}} {
		if err := h.Record(node8, []string{"a", "a", "b"}, slow, 0); err != nil {
			t.Fatal(err)
		}
	}
	e, err := h.Slowdowns(node8, members("a", "b", "a"), nil)
	if err != nil || !near(e[0].Slow, 1.1) || e[1].Slow != 2 || !near(e[2].Slow, 1.5) {
		t.Errorf("%+v %v", e, err)
	}
	for _, x := range []float64{3, 1, 3, 1} {
		if err := h.RecordOne(node8, []string{"c", "c"}, 1, x, 0); err != nil {
			t.Fatal(err)
		}
	}
	if e, _ := h.Slowdowns(node8, members("c", "c"), nil); e[0].Weight != 2 || e[1].Weight != 2 {
		t.Errorf("%+v, want as much known of one as of the other", e)
	}
}

// Ensure that a set that ran out of memory is refused, and every set with it inside, and nothing else.
func TestOOM(t *testing.T) {
	h := &interference.History{}
	if err := h.RecordOOM(node8, []string{"b", "a"}, 5); err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]bool{"a": false, "a b": true, "b a": true, "a c b": true, "a c": false,
		"b b": false, "a a b b": true} {
		if got, err := h.Refused(node8, strings.Fields(set)); err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", set, got, err, want)
		}
	}
	if got, _ := h.Refused(interference.Place{GPU: "a100", Width: 8}, []string{"a", "b"}); got {
		t.Error("refused where it was never tried")
	}
	if e, _ := h.Slowdowns(node8, members("a", "b"), nil); e[0].Source != interference.Prior {
		t.Errorf("%+v learned from a failure, want the prior", e[0])
	}
}

// naive is a History as a list: the twin.
type naive struct {
	place interference.Place
	set   []string
	slow  float64 // of all
}

// estimate is the documented rule, by a search through all records and all parts.
func estimate(list []naive, p interference.Place, set []string, i int) float64 {
	best, size := interference.Generic(len(set)), 1
	for mask := 1; mask < 1<<len(set); mask++ {
		var part []string
		for j := range set {
			if mask>>j&1 == 1 {
				part = append(part, set[j])
			}
		}
		slices.Sort(part)
		n := bits.OnesCount(uint(mask))
		if mask>>i&1 == 0 || n < 2 {
			continue
		}
		sum, k := 0.0, 0
		for _, r := range list {
			if r.place == p && slices.Equal(r.set, part) {
				sum, k = sum+r.slow, k+1
			}
		}
		if k == 0 {
			continue
		}
		slow := sum / float64(k) * interference.Generic(len(set)) / interference.Generic(n)
		if n > size || n == size && slow > best {
			best, size = slow, n
		}
	}
	return best
}

func randomHistory(t *testing.T, r *rand.Rand) (*interference.History, []naive) {
	t.Helper()
	h := &interference.History{}
	var list []naive
	for range r.IntN(30) {
		rec := naive{place: interference.Place{GPU: []string{"v", "a"}[r.IntN(2)], Width: int32(r.IntN(2))},
			slow: 1 + r.Float64()}
		for range 2 + r.IntN(3) {
			rec.set = append(rec.set, string(rune('a'+r.IntN(4))))
		}
		slow := slices.Repeat([]float64{rec.slow}, len(rec.set))
		if err := h.Record(rec.place, rec.set, slow, sched.Time(r.IntN(100))); err != nil {
			t.Fatal(err)
		}
		slices.Sort(rec.set)
		list = append(list, rec)
	}
	return h, list
}

// Ensure that estimates are those of the naive twin, that the order of a set is of no account, and that Save and Load
// change nothing.
func TestEstimatesAgainstTwin(t *testing.T) {
	sources := make(map[interference.Source]int)
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		h, list := randomHistory(t, r)
		again := &interference.History{}
		if err := again.Load(h.Save(nil)); err != nil || string(again.Save(nil)) != string(h.Save(nil)) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for range 20 {
			var set []string
			for range 2 + r.IntN(4) {
				set = append(set, string(rune('a'+r.IntN(5))))
			}
			p := interference.Place{GPU: "v", Width: int32(r.IntN(2))}
			got, err := again.Slowdowns(p, members(set...), nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range set {
				sources[got[i].Source]++
				if want := estimate(list, p, set, i); !near(got[i].Slow, want) {
					t.Fatalf("seed %d: %v of %v: %+v, want %v", seed, i, set, got[i], want)
				}
			}
		}
	}
	if sources[interference.Exact] < 100 || sources[interference.Subset] < 100 || sources[interference.Prior] < 100 {
		t.Errorf("%v: too few to say anything", sources)
	}
}

// Ensure that what makes no sense is refused.
func TestHistoryErrors(t *testing.T) {
	h := &interference.History{}
	two := []string{"a", "b"}
	for want, err := range map[string]error{
		"a set of 0 jobs, want 1 to 8": h.Record(node8, nil, nil, 0),
		"a set of 9 jobs, want 1 to 8": h.Record(node8,
			slices.Repeat([]string{"a"}, 9), nil, 0),
		"a set with a job of unknown model, want the models of all": h.RecordOOM(node8,
			[]string{"a", ""}, 0),
		"1 slow-downs of 2 jobs, want one each": h.Record(node8, two, []float64{1},
			0),
		`slow-down NaN of "b", want a number > 0 up to 10000`: h.Record(node8, two,
			[]float64{1, math.NaN()}, 0),
		`slow-down 0 of "a", want a number > 0 up to 10000`: h.Record(node8, two,
			[]float64{0, 1}, 0),
		`slow-down +Inf of "a", want a number > 0 up to 10000`: h.RecordOne(node8, two, 0,
			math.Inf(1), 0),
		"mechanism 9, width 0, want one of time-slicing, mps, mig and a width >= 0": h.Record(
			interference.Place{How: 9}, two, []float64{1, 1}, 0),
	} {
		if err == nil || err.Error() != "interference: "+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, use := range []float64{-.1, 1.1, math.NaN()} {
		if _, err := h.Slowdowns(node8, []interference.Member{{Model: "a", Use: use}}, nil); err == nil ||
			!strings.HasSuffix(err.Error(), `of "a", want 0..1`) {
			t.Errorf("use %v: %v", use, err)
		}
	}
	if h.Len() != 0 {
		t.Errorf("%d sets learned from nonsense", h.Len())
	}
}

func FuzzLoad(f *testing.F) {
	h, _ := randomHistory(&testing.T{}, rand.New(rand.NewPCG(7, 1)))
	_ = h.RecordOOM(node8, []string{"x", "y"}, 9)
	f.Add(h.Save(nil))
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		h := &interference.History{}
		if h.Load(b) != nil {
			return
		}
		if again := (&interference.History{}); again.Load(h.Save(nil)) != nil ||
			string(again.Save(nil)) != string(h.Save(nil)) {
			t.Fatal("what was loaded does not save and load")
		}
		for _, n := range []int{1, 2, 3} {
			if w := h.Worst(n); math.IsNaN(w) || w < 0 {
				t.Fatal(w)
			}
		}
	})
}

func BenchmarkSlowdowns(b *testing.B) {
	h := &interference.History{}
	for i := range 200 {
		models := []string{fmt.Sprint(i % 20), fmt.Sprint(i / 20)}
		if err := h.Record(node8, models, []float64{1.1, 1.2}, 0); err != nil {
			b.Fatal(err)
		}
	}
	set, dst := members("1", "2", "3", "x"), []interference.Estimate(nil)
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if dst, err = h.Slowdowns(node8, set, dst[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

// Ensure that no set is taken to be faster than its jobs alone: a trial would be over before it starts.
func TestWorstIsNoSpeedup(t *testing.T) {
	h := &interference.History{}
	if err := h.Record(interference.Place{Width: 1}, []string{"a", "b"}, []float64{.01, .02}, 0); err != nil {
		t.Fatal(err)
	}
	if w := h.Worst(2); w != 1 {
		t.Errorf("worst slow-down of a pair %v, want 1", w)
	}
}
