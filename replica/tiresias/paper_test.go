package tiresias

import (
	"math"
	"slices"
	"testing"
)

// The worked example of the authors' slides: 2 GPUs, all jobs at 0, service 4, 8 and 12. Only one job runs at a time.
func workedExample(scale int64) []Job {
	return []Job{{ID: "J1", GPUs: 2, Duration: 2 * scale}, {ID: "J2", GPUs: 1, Duration: 8 * scale},
		{ID: "J3", GPUs: 2, Duration: 6 * scale}}
}

// Ensure that the worked example ends as published: averages 10.0 (discretised), 9.3 (SRSF), and as measured with the
// released simulator where the slides say nothing.
// Reference: Gu et al., NSDI'19, slides; released simulator, commit 959f9b0, on the example with all times x 100.
func TestWorkedExample(t *testing.T) {
	gittins := func(scale int64, limits ...int64) Params {
		return Params{GPUs: 2, Limits: limits, Gittins: true, Delta: 4 * scale,
			Samples: []int64{4 * scale, 8 * scale, 12 * scale}}
	}
	for _, c := range []struct {
		name  string
		scale int64
		p     Params
		ends  []int64
		pre   int // preemptions of all jobs
	}{
		{"dlas-gpu K=2", 1, Params{GPUs: 2, Limits: []int64{4}}, []int64{2, 12, 16}, 2},
		{"dlas-gpu K=3", 1, Params{GPUs: 2, Limits: []int64{4, 8}}, []int64{2, 12, 16}, 2},
		{"gittins K=2", 1, gittins(1, 4), []int64{2, 12, 16}, 2},
		{"dlas-gpu K=2", 100, Params{GPUs: 2, Limits: []int64{400}}, []int64{200, 1200, 1600}, 2},
		{"dlas-gpu K=3", 100, Params{GPUs: 2, Limits: []int64{400, 800}}, []int64{200, 1200, 1600}, 2},
		{"gittins K=2", 100, gittins(100, 400), []int64{200, 1200, 1600}, 2},
		{"gittins K=3", 100, gittins(100, 400, 800), []int64{200, 1200, 1600}, 2},
		{"dlas K=2", 100, Params{GPUs: 2, Limits: []int64{400}, Seconds: true}, []int64{200, 1400, 1600}, 2},
		{"dlas-gpu low limit", 100, Params{GPUs: 2, Limits: []int64{200}}, []int64{500, 1100, 1600}, 3},
		{"K=1 is first come first served", 1, Params{GPUs: 2}, []int64{2, 10, 16}, 0},
	} {
		out := Run(workedExample(c.scale), c.p)
		if got := ends(out); !slices.Equal(got, c.ends) {
			t.Errorf("%s, times x %d: ends %d, want %d", c.name, c.scale, got, c.ends)
		}
		if got := preemptions(out); got != c.pre {
			t.Errorf("%s, times x %d: %d preemptions, want %d", c.name, c.scale, got, c.pre)
		}
	}
	if got := ends(twinShortest(workedExample(1), 2, twinKeys["shortest-gpu"])); !slices.Equal(got,
		[]int64{2, 10, 16}) {
		t.Errorf("SRSF: ends %d", got)
	}
	if got := ends(twinShortest(workedExample(1), 2, twinKeys["shortest"])); !slices.Equal(got, []int64{2, 16, 8}) {
		t.Errorf("SRTF: ends %d", got)
	}
}

func ends(out []Outcome) (list []int64) {
	for _, o := range out {
		list = append(list, o.End)
	}
	return list
}

func preemptions(out []Outcome) (n int) {
	for _, o := range out {
		n += o.Preemptions
	}
	return n
}

// Ensure that the released quirks are there, each in the smallest case that shows it.
// Reference: Gu et al., NSDI'19, released simulator, commit 959f9b0.
func TestQuirks(t *testing.T) {
	one := func(id string, submit, duration int64) Job {
		return Job{ID: id, GPUs: 1, Submit: submit, Duration: duration}
	}
	for _, c := range []struct {
		name string
		jobs []Job
		p    Params
		want []Outcome // as many as are of interest
	}{
		{
			// At 0 the end of a and the arrival of c tie at 10, and a is written into c's record. At 5 a is demoted
			// and preempted by b. At 10 it ends all the same, half done, its last wait unsettled.
			name: "tie", jobs: []Job{one("a", 0, 10), one("b", 0, 100), one("c", 10, 1)},
			p:    Params{GPUs: 1, Limits: []int64{5}},
			want: []Outcome{{ID: "a", Start: 0, End: 10, Preemptions: 1, Finished: true}},
		}, {
			// Wake-up first planned for floor(10/2) = 5, then at 3 for 3 + floor((10-3)/2) = 6.
			name: "late demotion", jobs: []Job{{ID: "wide", GPUs: 2, Duration: 9}, one("b", 3, 1)},
			p: Params{GPUs: 2, Limits: []int64{10}},
			want: []Outcome{{ID: "wide", Start: 0, End: 10, Pending: 1, Preemptions: 1, Finished: true},
				{ID: "b", Start: 6, End: 7, Pending: 3, Finished: true}},
		}, {
			name: "seconds are exact", jobs: []Job{{ID: "wide", GPUs: 2, Duration: 9}, one("b", 3, 1)},
			p: Params{GPUs: 2, Limits: []int64{5}, Seconds: true},
			want: []Outcome{{ID: "wide", Start: 0, End: 10, Pending: 1, Preemptions: 1, Finished: true},
				{ID: "b", Start: 5, End: 6, Pending: 2, Finished: true}},
		}, {
			name: "too wide is dropped silently", jobs: []Job{{ID: "wide", GPUs: 3, Duration: 9}, one("b", 3, 1)},
			p:    Params{GPUs: 2, Limits: []int64{10}},
			want: []Outcome{{ID: "wide", Start: -1, End: -1, Pending: 4}, {ID: "b", Start: 3, End: 4, Finished: true}},
		}, {
			// Demoted after 4 seconds, a job is promoted after floor(4 x 0.5) = 2 more. a runs 0-4, promoted 6, runs
			// 8-12, promoted 14, runs 14-15; b runs 4-8, promoted 10, runs 12-14.
			name: "knob", jobs: []Job{one("a", 0, 9), one("b", 0, 6)},
			p: Params{GPUs: 1, Limits: []int64{4}, Knob: 0.5},
			want: []Outcome{{ID: "a", Start: 0, End: 15, Pending: 6, Preemptions: 2, Promotions: 2, Finished: true},
				{ID: "b", Start: 4, End: 14, Pending: 8, Preemptions: 1, Promotions: 1, Finished: true}},
		}, {
			name: "no knob", jobs: []Job{one("a", 0, 9), one("b", 0, 6)}, p: Params{GPUs: 1, Limits: []int64{4}},
			want: []Outcome{{ID: "a", Start: 0, End: 13, Pending: 4, Preemptions: 1, Finished: true},
				{ID: "b", Start: 4, End: 15, Pending: 9, Preemptions: 1, Finished: true}},
		}, {
			// The released simulator never leaves second 0: floor(4/8) = 0. Run moves on.
			name: "limit below the width", jobs: []Job{{ID: "wide", GPUs: 8, Duration: 9}},
			p:    Params{GPUs: 8, Limits: []int64{4}},
			want: []Outcome{{ID: "wide", Start: 0, End: 9, Finished: true}},
		}, {
			name: "no time at all", jobs: []Job{one("a", 7, 0)}, p: Params{GPUs: 1},
			want: []Outcome{{ID: "a", Start: 7, End: 7, Finished: true}},
		},
	} {
		got := Run(c.jobs, c.p)
		if !slices.Equal(got[:len(c.want)], c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

// Ensure that rounding follows Python 2: the exact binary value decides, and an exact half goes up.
func TestRoundHalfAway(t *testing.T) {
	for _, c := range []struct {
		x        float64
		decimals float64
		want     float64
	}{
		{0.5, 0, 1}, {1.5, 0, 2}, {2.5, 0, 3}, {0.125, 2, 0.13}, {0.375, 2, 0.38}, {0.03125, 4, 0.0313}, // exact halves
		{2.675, 2, 2.67}, {1.005, 2, 1}, {0.285, 2, 0.28}, {0.145, 2, 0.14}, // below the half in binary
		{0.000005, 5, 0.00001}, {1.115, 2, 1.11}, {1.0 / 3, 5, 0.33333}, {2.0 / 3, 5, 0.66667}, {0, 5, 0}, {1, 5, 1},
	} {
		if got := roundHalfAway(c.x, math.Pow(10, c.decimals)); got != c.want {
			t.Errorf("round(%v, %v) = %v, want %v", c.x, c.decimals, got, c.want)
		}
	}
}

// Ensure that the table does what was released: total size in e, integer division, the last sample worth nothing. On
// the worked example the index is the same everywhere below 800, where the definition's index would rise.
func TestIndexByHand(t *testing.T) {
	table := newRankTable([]int64{1200, 400, 800}, 400)
	want := []float64{
		833.325, // a=399: i=0, k=1, p=round(1/3, 5)=0.33333, e=(400+400*2)/3=400
		// a=799: i=1, k=2 (799+400 <= 1199), p=1/2, e=(800+400)/2=600
		833.3333,
		0, // a=1199: i=k=2
	}
	if !slices.Equal(table.index, want) {
		t.Errorf("index %v, want %v", table.index, want)
	}
	// a=399 with delta 401 reaches 800, the last sample, which still does not count: k=1, p=1/2, e=(400+401)/2=400.
	if got := newRankTable([]int64{400, 800}, 401).index[0]; got != 1250 {
		t.Errorf("index when the quantum reaches the last sample: %v, want 1250", got)
	}
	for _, c := range []struct {
		service int64
		want    float64
	}{{0, want[0]}, {399, want[0]}, {400, want[1]}, {799, want[1]}, {800, 0}, {1199, 0}, {1200, 0}, {5000, 0}} {
		if got, _ := table.at(c.service); got != c.want {
			t.Errorf("index at %d: %v, want %v", c.service, got, c.want)
		}
	}
}
