package experiment

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/stage/allocate"
)

// testbedAlone is the ground of Tiresias without what needs public traces.
func testbedAlone() []ground { return []ground{{Name: "tiresias", Rows: tiresiasGround("")[:1]}} }

// Ensure that a worse set of constants is reported as worse, under a digest of its own, and the chosen set is not.
func TestGroundsMutant(t *testing.T) {
	worse := allocate.Chosen()
	worse.LongWait = time.Minute // all wait long, so that waiting decides
	var digests []string
	for _, c := range []struct {
		set  allocate.Constants
		want int
	}{{allocate.Chosen(), 0}, {worse, 1}} {
		m, err := playGrounds(context.Background(), testbedAlone(), c.set, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := m.Grounds[0].Rows[0]
		if len(m.Worse) != c.want || (r.Verdict == verdictWorse) != (c.want == 1) {
			t.Errorf("%+v: %v, %q, worse: %q, want %d rows worse", c.set, r.Ratio, r.Verdict, m.Worse, c.want)
		}
		if m.Runs != 4*seedsOfHalf || r.Pairs != seedsOfHalf || m.Wins {
			t.Errorf("%d runs, %d pairs, wins %v", m.Runs, r.Pairs, m.Wins)
		}
		digests = append(digests, m.Constants)
	}
	if digests[0] == digests[1] {
		t.Errorf("digest %s of both sets", digests[0])
	}
}

// rowBy is a row in which worth takes so many times as long as another, world by world.
func rowBy(name string, ratios ...float64) *rowDoc {
	r := &rowDoc{Name: name, Best: "other", bar: .05, contenders: []contender{{Name: rowWorth}, {Name: "other"}},
		outcomes: make([][]*simulate.Outcome, 2)}
	for _, x := range ratios {
		r.outcomes[0] = append(r.outcomes[0], &simulate.Outcome{Result: metrics.Result{AvgJCT: 100 * x, P99JCT: 500}})
		r.outcomes[1] = append(r.outcomes[1], &simulate.Outcome{Result: metrics.Result{AvgJCT: 100, P99JCT: 500}})
	}
	return r
}

// Ensure that verdicts, the rule and the gate are what they were fixed to be.
func TestGroundsRule(t *testing.T) {
	many := func(x float64) []float64 { return []float64{x, x * 1.001, x / 1.001, x * 1.002, x / 1.002} }
	good := func() *groundDoc { return &groundDoc{Rows: []*rowDoc{rowBy("good", many(.9)...)}} }
	even := func() *groundDoc { return &groundDoc{Rows: []*rowDoc{rowBy("even", many(1.005)...)}} }
	unfinished := rowBy("unfinished", many(.9)...)
	unfinished.outcomes[0][2].Unfinished = 1
	dear, longer := rowBy("dear", many(.9)...), rowBy("longer", many(.9)...)
	dear.paid, longer.energy = [][]float64{{1.1, 1.1, 1.1, 1.1, 1.1}, {1, 1, 1, 1, 1}}, true
	cheap := rowBy("cheap", many(1.04)...)
	cheap.paid = [][]float64{{.9, .9, .9, .9, .9}, {1, 1, 1, 1, 1}}
	for k := range longer.outcomes[0] {
		ours, other := longer.outcomes[0][k], longer.outcomes[1][k]
		ours.EnergyKWh, ours.AvgRun, other.EnergyKWh, other.AvgRun = 9, 7200, 10, 3600
	}
	late := rowBy("late", many(.9)...)
	late.outcomes[0][0].MaxWait, late.outcomes[1][0].MaxWait = 36000, 3600
	for _, c := range []struct {
		name    string
		grounds []*groundDoc
		verdict string // of the last ground's last row
		wins    bool
		failed  int // of the gate
	}{
		{"five better", []*groundDoc{good(), good(), good(), good(), good(), even(), even()}, verdictEven, true, 0},
		{"four better", []*groundDoc{good(), good(), good(), good(), even(), even(), even()}, verdictEven, false, 0},
		{"one worse", []*groundDoc{good(), good(), good(), good(), good(),
			{Rows: []*rowDoc{rowBy("worse", many(1.04)...)}}}, verdictWorse, false, 1},
		{"worse, but by less than 1 %", []*groundDoc{{Rows: []*rowDoc{rowBy("small", many(1.008)...)}}}, verdictEven,
			false, 0},
		{"wide", []*groundDoc{{Rows: []*rowDoc{rowBy("wide", .8, 1.2, .9, 1.1)}}},
			"none: the interval is wider than 5 %", false, 0},
		{"one world", []*groundDoc{{Rows: []*rowDoc{rowBy("one", 1.2)}}},
			"none: one world alone has no interval; --seeds 2 or more has one", false, 1},
		{"unfinished", []*groundDoc{{Rows: []*rowDoc{unfinished}}}, verdictWorse, false, 0},
		{"more money", []*groundDoc{{Rows: []*rowDoc{dear}}},
			"none: 1.100 of the other's money spent, want the same within 1 %", false, 1},
		{"less money", []*groundDoc{{Rows: []*rowDoc{cheap}}},
			"none: 0.900 of the other's money spent, want the same within 1 %", false, 1},
		{"longer", []*groundDoc{{Rows: []*rowDoc{longer}}},
			"none: run time 2.000 of the other's, want no longer", false, 1},
		{"waits", []*groundDoc{{Rows: []*rowDoc{late}}}, verdictBetter, false, 1},
		{"missing", []*groundDoc{{Rows: []*rowDoc{rowBy("there", many(.9)...), {Name: "gone", Missing: "no file"}}}},
			"none: no file", false, 1},
	} {
		m := &groundsDoc{Grounds: c.grounds}
		m.judge()
		rows := c.grounds[len(c.grounds)-1].Rows
		if got := rows[len(rows)-1]; got.Verdict != c.verdict || m.Wins != c.wins || len(m.Failed) != c.failed {
			t.Errorf("%s: verdict %q (%v, p %v), wins %v, gate %q; want %q, %v, %d failed", c.name, got.Verdict,
				got.Ratio, got.P, m.Wins, m.Failed, c.verdict, c.wins, c.failed)
		}
		if c.name == "missing" && !strings.Contains(m.Grounds[0].Verdict, "1 of 2 rows lack their traces") {
			t.Errorf("missing: ground %q", m.Grounds[0].Verdict)
		}
	}
	// p of 0.01, 0.04, 0.03 by Holm: 0.03, 0.06, 0.06
	rows := []*rowDoc{{log: withP(.01)}, {log: withP(.04)}, {log: withP(.03)}}
	holm(rows)
	for i, want := range []float64{.03, .06, .06} {
		if math.Abs(rows[i].P-want) > 1e-6 {
			t.Errorf("p %d is %v after Holm, want %v", i, rows[i].P, want)
		}
	}
}

// withP returns a sample whose mean is as far from 0 as gives a p value.
func withP(p float64) sample {
	low, high := 0.0, 1000.0
	for range 100 {
		s := sample{n: 5, freedom: 4, variance: 1, mean: (low + high) / 2}
		if s.p() > p {
			low = s.mean
		} else {
			high = s.mean
		}
	}
	return sample{n: 5, freedom: 4, variance: 1, mean: low}
}

// Ensure that weeks of arrivals are averaged each by itself.
func TestWeeks(t *testing.T) {
	day := sched.Time(24 * time.Hour)
	job := func(submit, finish sched.Time) metrics.Job {
		return metrics.Job{Submit: submit, Finish: finish, Outcome: sched.Finished}
	}
	jobs := []metrics.Job{job(day, 2*day), job(2*day, 5*day), job(23*day, 24*day), {Submit: 24 * day}}
	hours := func(h float64) float64 { return 3600 * h }
	if got, want := weeks(jobs), []float64{hours(48), 0, 0, hours(24)}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Ensure that a file of constants is read strictly, and changes nothing where it is wrong.
func TestReadConstants(t *testing.T) {
	path := filepath.Join(t.TempDir(), "constants.yaml")
	for _, c := range []struct{ src, want string }{
		{"stretch: 2\nkeep_after: 60\n", ""},
		{"strech: 2\n", `1:1: unknown key "strech" (did you mean "stretch"?)`},
		{"stretch: 0\n", "stretch 0, want a number above 0"},
		{"keep_after: soon\n", "want seconds, from 1 to 31536000"},
		{"least_moments: -1\n", "least_moments -1"},
		{"[1]\n", "want"},
	} {
		if err := os.WriteFile(path, []byte(c.src), 0o600); err != nil {
			t.Fatal(err)
		}
		set := allocate.Chosen()
		err := readConstants(path, &set)
		if c.want == "" {
			if err != nil || set.Stretch != 2 || set.KeepAfter != time.Minute || set.HoldFor != 4 {
				t.Errorf("%q: %+v, %v", c.src, set, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.src, err, c.want)
		}
	}
	set := allocate.Chosen()
	if err := readConstants(path+".none", &set); err == nil {
		t.Error("a file that is not there: no error")
	}
}

// Ensure that a row of one world says that it has no interval, and its ground that it has no verdict.
func TestGroundsOfOneWorld(t *testing.T) {
	t.Parallel()
	r := rowBy("one", .5)
	m := &groundsDoc{Grounds: []*groundDoc{{Name: "g", Rows: []*rowDoc{r}}}}
	m.judge()
	if !strings.Contains(r.Verdict, "one world alone has no interval; --seeds 2 or more") {
		t.Errorf("row: %q", r.Verdict)
	}
	if g := m.Grounds[0]; !strings.HasPrefix(g.Verdict, "none: ") || g.Pooled != nil {
		t.Errorf("ground: %q, %v", g.Verdict, g.Pooled)
	}
	if _, err := json.Marshal(m); err != nil {
		t.Error(err)
	}
}
