package variability

import (
	"bytes"
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

func tracker(t testing.TB, gpus, classes int, p Params) *Tracker {
	t.Helper()
	tr, err := NewTracker(gpus, classes, p)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

const minute = sched.Time(time.Minute)

// Ensure that one bad event leaves the persistent score alone, costs a penalty that halves each half-life, and is no
// reason for quarantine.
func TestTransientPenalty(t *testing.T) {
	tr := tracker(t, 2, 2, Params{})
	s := &Scores{Name: "s", GPUs: []GPU{{"0", ""}, {"1", ""}}, Classes: []string{"A", "B"},
		PM: [][]float64{{1, .9}, {1, 1}}}
	if err := tr.Start(s); err != nil {
		t.Fatal(err)
	}
	now := sched.Time(0)
	for range 6 {
		tr.Check(1, 0, now, .9)
		now += minute
	}
	tr.Check(1, 0, now, 2.7) // three times as slow as usual
	for halves := range 5 {
		at := now.Add(time.Duration(halves) * 10 * time.Minute)
		if got, want := tr.Penalty(1, 0, at), 2*math.Exp2(-float64(halves)); math.Abs(got-want) > 1e-12 {
			t.Errorf("after %d half-lives the penalty is %v, want %v", halves, got, want)
		}
	}
	if got := tr.Score(1, 0); math.Abs(got-.9) > 1e-12 || tr.Quarantined(1, 0) {
		t.Errorf("score %v, quarantine %v, want 0.9 and none", got, tr.Quarantined(1, 0))
	}
	if got := tr.Now(1, 0, now); math.Abs(got-2.7) > 1e-9 {
		t.Errorf("score now %v, want 2.7", got)
	}
	// A good check at once moves it half way down.
	tr.Check(1, 0, now, .9)
	if got := tr.Penalty(1, 0, now); math.Abs(got-1) > 1e-12 {
		t.Errorf("penalty %v after a good check, want 1", got)
	}
	if tr.Now(0, 0, now) != 1 || tr.Now(1, 1, now) != 1 || tr.Penalty(1, 1, now) != 0 {
		t.Error("another GPU or class was touched")
	}
}

// Ensure that a GPU that turns slow for good is known as slow, without a penalty, after some checks, and one that turns
// fast again as well.
func TestPersistentChange(t *testing.T) {
	tr := tracker(t, 1, 1, Params{})
	now := sched.Time(0)
	for _, change := range []float64{1.2, 2, .95} {
		for range 80 {
			tr.Check(0, 0, now, change*(1+.01*math.Sin(float64(now))))
			now += 10 * minute
		}
		x := tr.Score(0, 0)
		if math.Abs(x/change-1) > .02 || tr.Penalty(0, 0, now) > .02 {
			t.Errorf("score %v, penalty %v, want about %v and none", x, tr.Penalty(0, 0, now), change)
		}
	}
}

// Ensure that a GPU of which nothing was known gets the median of its first five checks, and 1 before.
func TestUnknownGPU(t *testing.T) {
	tr := tracker(t, 1, 1, Params{})
	for i, x := range []float64{1.2, 3, 1.25, 1.1, 1.3} {
		if tr.Score(0, 0) != 1 {
			t.Errorf("score %v after %d checks, want 1", tr.Score(0, 0), i)
		}
		tr.Check(0, 0, sched.Time(i), x)
	}
	if got := tr.Score(0, 0); math.Abs(got-1.25) > 1e-12 {
		t.Errorf("score %v, want 1.25", got)
	}
	if n, last := tr.Checks(0, 0); n != 5 || last != 4 {
		t.Errorf("%d checks, last at %v", n, last)
	}
	tr.Drop(0)
	if n, _ := tr.Checks(0, 0); n != 0 || tr.Score(0, 0) != 1 {
		t.Error("a dropped GPU is remembered")
	}
}

// Ensure that two bad checks of three quarantine a GPU, until good ones take their place.
func TestQuarantine(t *testing.T) {
	for _, c := range []struct {
		params Params
		checks string // b: bad, .: good
		want   string // Q: in quarantine afterwards
	}{
		{Params{}, "b.b..bb...bbbb..", "--Q---QQ---QQQQ-"},
		{Params{Bad: 3, Of: 3}, "bb.bbb.b", "-----Q--"},
		{Params{Bad: 1, Of: 1}, "b.bb.", "Q-QQ-"},
		{Params{Bad: 2, Of: 5}, "b...b.b...", "----Q-QQQ-"},
	} {
		tr := tracker(t, 2, 2, c.params)
		got := ""
		var bad []bool
		for i, check := range c.checks {
			x := 1.3 // not above the limit
			if check == 'b' {
				x = 1.31
			}
			bad = append(bad, check == 'b')
			tr.Check(1, 1, sched.Time(i), x)
			mark := "-"
			if tr.Quarantined(1, 1) {
				mark = "Q"
			}
			got += mark
			if want := countBad(bad, tr.params.Of) >= tr.params.Bad; want != tr.QuarantinedForAny(1) ||
				tr.QuarantinedForAny(0) || tr.Quarantined(1, 0) {
				t.Errorf("%s: check %d: quarantine %v, want %v and no other", c.checks, i, tr.QuarantinedForAny(1),
					want)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.checks, got, c.want)
		}
	}
}

func countBad(bad []bool, of int) int {
	n := 0
	for _, b := range bad[max(0, len(bad)-of):] {
		if b {
			n++
		}
	}
	return n
}

// Ensure that a suspicion costs a penalty that fades, and neither score nor quarantine.
func TestSuspicion(t *testing.T) {
	tr := tracker(t, 2, 1, Params{})
	for i := range 20 {
		tr.Suspect(1, 0, sched.Time(i)*minute, 2)
		tr.Suspect(1, 0, sched.Time(i)*minute, .5) // a smaller one takes nothing back
	}
	if tr.Now(1, 0, 19*minute) != 2 || tr.Score(1, 0) != 1 || tr.Quarantined(1, 0) || tr.Now(0, 0, 19*minute) != 1 {
		t.Errorf("score %v, now %v, in quarantine %v", tr.Score(1, 0), tr.Now(1, 0, 19*minute), tr.Quarantined(1, 0))
	}
	if n, _ := tr.Checks(1, 0); n != 0 || math.Abs(tr.Penalty(1, 0, 29*minute)-.5) > 1e-12 {
		t.Errorf("%d checks, penalty %v after a half-life", n, tr.Penalty(1, 0, 29*minute))
	}
	tr.Check(1, 0, 29*minute, 1)
	if got := tr.Penalty(1, 0, 29*minute); math.Abs(got-.25) > 1e-12 {
		t.Errorf("penalty %v after a good check, want half", got)
	}
}

// Ensure that the published Longhorn runs, checked in the order of their time stamps, leave no one slow for good and
// put no one in quarantine, though 22 runs are above 1.3; and that saving and loading midway changes nothing.
func TestTrackerOnLonghorn(t *testing.T) {
	runs := readRuns(t, "resnet-longhorn-agg.csv", ByUUID)
	m := measure(t, runs, ByRow)
	slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(a.At, b.At) })
	number := make(map[string]int)
	for g := range m.GPUs {
		number[m.GPUs[g].GPU] = g
	}
	one, two := tracker(t, len(m.GPUs), 1, Params{}), tracker(t, len(m.GPUs), 1, Params{})
	quarantined := make(map[int]bool)
	for i, run := range runs {
		g := number[run.GPU]
		one.Check(g, 0, run.At, run.Perf/m.Norm)
		two.Check(g, 0, run.At, run.Perf/m.Norm)
		if one.Quarantined(g, 0) {
			quarantined[g] = true
		}
		if i == len(runs)/2 {
			again := tracker(t, len(m.GPUs), 1, Params{})
			if err := again.Load(two.Save(nil)); err != nil {
				t.Fatal(err)
			}
			two = again
		}
	}
	if !bytes.Equal(one.Save(nil), two.Save(nil)) {
		t.Error("saving and loading midway changes the state")
	}
	worst := 0.0
	for g := range m.GPUs {
		worst = max(worst, one.Score(g, 0))
	}
	t.Logf("worst persistent score %.3f, %d GPUs were in quarantine", worst, len(quarantined))
	if worst > 1.1 || len(quarantined) > 0 {
		t.Errorf("worst persistent score %v, %d GPUs in quarantine, want at most 1.1 and none", worst, len(quarantined))
	}
}

func TestTrackerRefuses(t *testing.T) {
	for _, c := range []struct {
		gpus, classes int
		params        Params
		want          string
	}{
		{0, 1, Params{}, "variability: 0 GPUs in 1 classes, want 1..131072 and 1..64"},
		{1, 65, Params{}, "variability: 1 GPUs in 65 classes, want 1..131072 and 1..64"},
		{1, 1, Params{Rate: 1.5}, "variability: Rate 1.5, want a number in (0, 1]"},
		{1, 1, Params{Slack: math.NaN()}, "variability: Slack NaN, want a number >= 0"},
		{1, 1, Params{HalfLife: -1}, "variability: HalfLife -1ns, want > 0"},
		{1, 1, Params{Limit: .5}, "variability: Limit 0.5, want a number >= 1"},
		{1, 1, Params{Bad: 3, Of: 2}, "variability: 3 bad of 2 checks, want 1 <= Bad <= Of <= 5"},
	} {
		if _, err := NewTracker(c.gpus, c.classes, c.params); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	tr := tracker(t, 3, 2, Params{})
	if err := tr.Start(good()); err == nil {
		t.Error("scores of 2 GPUs start a tracker of 3")
	}
	for _, bad := range []func(){
		func() { tr.Check(3, 0, 0, 1) }, func() { tr.Check(-1, 1, 0, 1) }, func() { tr.Check(0, 2, 0, 1) },
		func() { tr.Check(0, 0, 0, math.NaN()) }, func() { tr.Check(0, 0, 0, 0) },
		func() { tr.Check(0, 0, 0, math.Inf(1)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a check out of range was taken")
				}
			}()
			bad()
		}()
	}
}

// Ensure that the state stays in bounds on any history, is the same for the same history, and survives Save and Load.
func TestTrackerOnRandomHistories(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	for range 100 {
		tr, twin := tracker(t, 3, 2, Params{}), tracker(t, 3, 2, Params{})
		now := sched.Time(0)
		for range 200 {
			g, c, x := r.IntN(3), r.IntN(2), math.Exp(r.NormFloat64())
			now += sched.Time(r.Int64N(int64(20 * minute)))
			tr.Check(g, c, now, x)
			twin.Check(g, c, now, x)
			score, p := tr.Score(g, c), tr.Penalty(g, c, now)
			if later := tr.Penalty(g, c, now+minute); !(score > 0 && p >= 0 && later <= p) || x > 1.1*score &&
				tr.Now(g, c, now) < x*(1-1e-9) {
				t.Fatalf("score %v, penalty %v and then %v after a check of %v", score, p, later, x)
			}
		}
		saved := tr.Save(nil)
		again := tracker(t, 3, 2, Params{})
		if err := again.Load(saved); err != nil || !bytes.Equal(again.Save(nil), saved) ||
			!bytes.Equal(twin.Save(nil), saved) {
			t.Fatalf("the state changes (%v)", err)
		}
	}
}

// FuzzTrackerLoad ensures that no bytes make Load panic or leave a state that cannot go on.
func FuzzTrackerLoad(f *testing.F) {
	tr := tracker(f, 2, 1, Params{})
	f.Add(tr.Save(nil))
	for i := range 8 {
		tr.Check(i%2, 0, sched.Time(i), 1+float64(i))
	}
	f.Add(tr.Save(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		tr := tracker(t, 2, 1, Params{})
		empty := tr.Save(nil)
		if err := tr.Load(b); err != nil {
			if !bytes.Equal(tr.Save(nil), empty) {
				t.Error("a failed Load changed the state")
			}
			return
		}
		if !bytes.Equal(tr.Save(nil), b) {
			t.Error("Save differs from what was loaded")
		}
		tr.Check(0, 0, 5, 2)
		if x := tr.Now(0, 0, 5); !(x > 0) || math.IsInf(x, 0) {
			t.Errorf("score now %v", x)
		}
	})
}

// QuarantinedForAny reports whether the GPU is in quarantine for some class.
func (t *Tracker) QuarantinedForAny(gpu int) bool {
	for class := range t.classes {
		if t.Quarantined(gpu, class) {
			return true
		}
	}
	return false
}
